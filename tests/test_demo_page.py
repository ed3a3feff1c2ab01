"""The demo's page over HTTP, where Gradio is installed: it answers, escapes, stops, keeps visitors apart."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("gradio", reason="needs Gradio, which `make demo` installs")

from gradio_client import Client

from rlcas_utils import desk
from rlcas_utils.demo import app, telecom_game, telecom_tab
from rlcas_utils.demo.desk_game import ModelSeat
from rlcas_utils.demo.limits import Stopped
from rlcas_utils.demo.roster import desk_roster
from rlcas_utils.demo.source import Source

INJECTION = "<img src=x onerror=alert(1)> where is order 140954?"


def endless(chat, stop):
    """A model that thinks until it is stopped."""
    while not stop.wait(0.1):
        pass
    raise Stopped


def with_endless_model(source):
    made = desk_roster(source)
    made.ready["base"] = lambda ticket: ModelSeat("base", ticket, endless)
    return made


@pytest.fixture(scope="module")
def address():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "desk_roster", with_endless_model)
        return app.launch(Source(None), "127.0.0.1", 0, wait=False)


def visitor(address):
    return Client(address, verbose=False)


def test_it_listens_to_this_machine_alone(address):
    assert address.startswith("http://127.0.0.1:")


def test_agents_play_a_benchmark_query_to_the_end(address):
    status, shown = visitor(address).predict(
        "Benchmark query", "bench-001", "", "", ["rules", "oracle"], api_name="/desk_play"
    )
    assert "All have ended." in status
    assert shown.count("Right: the right ending") == 2


def test_a_slow_model_shows_its_seconds_and_stops_for_its_visitor_only(address):
    client, other = visitor(address), visitor(address)
    asked = ("Benchmark query", "bench-001", "", "", ["base"])
    jobs = [one.submit(*asked, api_name="/desk_play") for one in (client, other)]
    while not all("thinking … 1 s" in str(job.outputs()) for job in jobs):
        time.sleep(0.1)
    client.predict(api_name="/desk_stop")
    status, shown = jobs[0].result(timeout=20)
    assert "Stopped." in status
    assert "Stopped." in shown
    assert not jobs[1].done()
    other.predict(api_name="/desk_stop")
    assert "Stopped." in jobs[1].result(timeout=20)[0]


def test_an_own_query_is_escaped_and_a_long_one_refused(address):
    client = visitor(address)
    asked = ("Write one", "bench-001", INJECTION, "order_status", ["oracle"])
    _, shown = client.predict(*asked, api_name="/desk_play")
    assert "&lt;img src=x onerror=alert(1)&gt;" in shown
    assert "<img" not in shown
    status, _ = client.predict("Write one", "bench-001", "a" * 801, "", ["oracle"], api_name="/desk_play")
    assert "801 characters" in status


def test_a_call_as_the_customer(address):
    client = visitor(address)
    task_id = telecom_game.task_choices()[0][1]
    client.predict(telecom_tab.BE, task_id, "expert", api_name="/telecom_start")
    chat = client.predict(INJECTION, api_name="/telecom_say")[1]
    assert "&lt;img" in chat
    assert "<img" not in chat
    phone = client.predict("", "messaging", "sms", "4g_only", api_name="/phone_toggle_airplane_mode")[3]
    assert "<dt>Airplane Mode</dt><dd>off</dd>" in phone
    verdict = client.predict(api_name="/telecom_hang_up")[4]
    assert "Reward 0" in verdict


def test_twenty_visitors_at_once_see_only_their_own_tickets(address):
    tickets = desk.load_tickets("benchmark")[:20]
    clients = [visitor(address) for _ in tickets]

    def play(client, ticket):
        client.predict("Benchmark query", ticket.ticket_id, "", "", api_name="/desk_open")
        for action in ticket.optimal_actions:
            shown = client.predict(api_name=f"/desk_act_{action}")[1]
        return shown

    with ThreadPoolExecutor(20) as pool:
        pages = list(pool.map(play, clients, tickets))
    for ticket, shown in zip(tickets, pages, strict=True):
        assert "as good as the oracle" in shown, ticket.ticket_id
        assert shown.count('role="note"') == 1
