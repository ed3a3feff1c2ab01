"""World, identifiers, services and handbook of the desk."""

import pytest

from rlcas_utils import desk
from rlcas_utils.desk import services
from rlcas_utils.desk.facts import FACTS
from rlcas_utils.desk.handbook import Ask, Choice, End, describe, next_node
from rlcas_utils.desk.identifiers import Identifiers, extract
from rlcas_utils.desk.rules import INTENTS
from rlcas_utils.desk.ticket import learn
from rlcas_utils.desk.world import BLOCKS, World


@pytest.fixture(scope="module")
def world():
    return desk.default_world()


def ask(world, service, facts=None, query="", **known):
    return services.call(world, service, query, Identifiers(**known), facts or {})


def test_world_has_the_promised_size(world):
    tables = {
        "customers": 200,
        "orders": 600,
        "products": 60,
        "articles": 40,
        "shipments": 400,
        "refunds": 200,
        "invoices": 600,
        "auth_events": 500,
    }
    for table, least in tables.items():
        assert world.row(f"SELECT count(*) AS n FROM {table}")["n"] >= least, table


def test_world_is_the_same_every_time(world):
    again = World()
    for table in ("customers", "orders", "shipments", "refunds", "invoices", "auth_events", "products"):
        assert world.rows(f"SELECT * FROM {table}") == again.rows(f"SELECT * FROM {table}")
    assert world.row("SELECT order_id FROM orders ORDER BY order_id")["order_id"] == "104047"


def test_splits_share_no_customer():
    seen = [number for block in BLOCKS.values() for number in block]
    assert len(seen) == len(set(seen)) == 300


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("my order 104 233 is late", "order_id", "104233"),
        ("order #104-233!", "order_id", "104233"),
        ("call me on 0171 1042334", "order_id", ""),
        ("mail Ada.Vos@Mail.Example.", "email", "ada.vos@mail.example"),
        ("where is px 12345678", "parcel_id", "PX12345678"),
        ("inv-20417 please", "invoice_id", "INV-20417"),
        ("it says e 41 on the screen", "fault", "e41"),
        ("\uff45\uff14\uff11 on the screen", "fault", "e41"),
        ("parcel PX12345678 only", "order_id", ""),
    ],
)
def test_identifiers_are_read_from_messages(text, field, value):
    assert getattr(extract(text, {}), field) == value


def test_product_is_found_by_its_model_word(world):
    assert extract("the old Halden kettle", world.models).sku == world.models["halden"]


def test_refund_needs_the_order_first(world):
    early = ask(world, "refund", order_id="152694")
    assert (early.ok, early.facts) == (False, {"refund.error": "order_first"})
    later = ask(world, "refund", {"order.status": "delivered"}, order_id="152694")
    assert later.facts == {"refund.decision": "over_limit"}
    assert later.details == {"order_id": "152694", "amount": 598.0, "limit": 200.0}


def test_account_data_need_a_verified_identity(world):
    email = "sanne.petrov@inbox.example"
    assert ask(world, "customer", email=email).facts == {"customer.error": "identity_first"}
    wrong = ask(world, "customer", {"auth.identity": "mismatch"}, email=email)
    assert wrong.facts == {"customer.error": "identity_mismatch"}
    right = ask(world, "customer", {"auth.identity": "verified"}, email=email)
    assert right.facts["customer.status"] == "active"
    assert right.found == {"order_id": "140511"}


def test_login_states_come_from_events(world):
    assert ask(world, "auth", email="vera.abara@post.example").facts["auth.login"] == "locked"
    assert ask(world, "auth", email="sanne.abara@mail.example").facts["auth.login"] == "suspicious"
    assert ask(world, "auth", email="vera.nakata@letters.example").facts["auth.identity"] == "mismatch"
    assert ask(world, "auth", email="nobody@mail.example").facts == {"auth.error": "unknown_email"}


@pytest.mark.parametrize(
    ("service", "error"),
    [
        ("order", "missing_order_number"),
        ("auth", "missing_email"),
        ("logistics", "missing_tracking"),
        ("inventory", "missing_product"),
    ],
)
def test_missing_identifiers_have_a_reason(world, service, error):
    answer = ask(world, service)
    assert not answer.ok
    assert answer.result() == {"service": service, "ok": False, "error": error}


def test_order_reveals_parcel_and_product(world):
    answer = ask(world, "order", order_id="149040")
    assert answer.facts["order.status"] == "shipped"
    assert answer.found == {"parcel_id": "PX20247760", "sku": world.models["cadenza"]}
    lost = ask(world, "logistics", parcel_id="PX20247760")
    assert lost.facts == {"logistics.status": "lost"}
    assert lost.details["last_scan_days"] > 10


def test_knowledge_base_prefers_the_fault_code(world):
    assert services.search_articles(world, "app crash e55", "e55")["kind"] == "no_fix"
    assert services.search_articles(world, "app crash", "")["title"].startswith("App crashes")
    assert services.search_articles(world, "e99", "e99") is None
    vague = ask(world, "knowledge", query="it is bad")
    assert vague.facts == {"knowledge.match": "details_needed"}


def test_every_fact_a_service_gives_is_listed(world):
    known = set(FACTS)
    for split in ("train", "benchmark"):
        for ticket in desk.load_tickets(split)[:300]:
            for step in desk.play(desk.OracleAgent(), ticket).history:
                assert len(step.text.split()) <= 40
            facts = desk.play(desk.OracleAgent(), ticket).facts
            assert {f"{name}={value}" for name, value in facts.items()} <= known


def test_out_of_date_failures_are_forgotten(world):
    facts = {"order.error": "missing_order_number"}
    found = ask(world, "customer", {"auth.identity": "verified"}, email="sanne.petrov@inbox.example")
    known = learn(facts, Identifiers(email="sanne.petrov@inbox.example"), found)
    assert known.order_id == "140511"
    assert "order.error" not in facts


def test_handbook_walk_on_a_small_tree():
    tree = Choice(
        "order_id",
        Ask("order", {"status=shipped|delivered": End("resolve", "a"), "*": End("human", "b")}),
        End("ask", "c"),
    )
    with_id = Identifiers(order_id="1")
    assert next_node(tree, Identifiers(), {}).action == 8
    assert next_node(tree, with_id, {}).action == 0
    assert next_node(tree, with_id, {"order.status": "delivered"}).action == 7
    assert next_node(tree, with_id, {"order.status": "processing"}).action == 11
    assert describe(tree)[0] == "message has order_id:"


def test_missing_branch_says_where_to_add_it():
    node = Ask("order", {"status=shipped": End("resolve", "a")})
    with pytest.raises(LookupError, match=r"desk/rules\.py"):
        node.follow({"order.status": "processing"})


def test_categories_need_different_endings_and_many_scenarios():
    for category in desk.CATEGORIES:
        tickets = [t for t in desk.load_tickets("train") if t.category == category]
        assert len({t.scenario for t in tickets}) >= 4, category
        assert len({t.resolution for t in tickets}) >= 4, category
    assert {category for category, _ in INTENTS.values()} == set(desk.CATEGORIES)
