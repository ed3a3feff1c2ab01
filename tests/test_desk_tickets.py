"""Tickets, noise and the leak check."""

import json
import random
import re
from collections import Counter

import pytest
import yaml

from rlcas_utils import desk
from rlcas_utils.config import project_root
from rlcas_utils.desk import leak, noise
from rlcas_utils.desk.tickets import load_tickets


@pytest.fixture(scope="module")
def splits():
    return {split: load_tickets(split) for split in ("train", "validation", "benchmark")}


def test_counts(splits):
    train = splits["train"]
    assert len({t.query for t in train}) == len(train) >= 600
    assert len({t.template_id for t in train}) >= 120
    assert len(splits["validation"]) >= 100
    assert len(splits["benchmark"]) == 100
    assert set(Counter(t.category for t in splits["benchmark"]).values()) == {12, 13}


def test_ids_are_unique(splits):
    for tickets in splits.values():
        assert len({t.ticket_id for t in tickets}) == len(tickets)


def test_splits_share_no_template(splits):
    train = {t.template_id for t in splits["train"]}
    validation = {t.template_id for t in splits["validation"]}
    assert not train & validation
    assert {t.template_id for t in splits["benchmark"]} == {None}


def test_episodes_are_two_to_five_steps(splits):
    for split, tickets in splits.items():
        lengths = [len(t.optimal_actions) for t in tickets]
        assert min(lengths) >= 2, split
        assert max(lengths) <= 5, split
    assert 2.5 <= sum(len(t.optimal_actions) for t in splits["benchmark"]) / 100 <= 3.5


def test_benchmark_has_naive_traps_in_every_category(splits):
    for category in desk.CATEGORIES:
        tickets = [t for t in splits["benchmark"] if t.category == category]
        assert len({t.scenario for t in tickets}) >= 4, category
        assert len({t.resolution for t in tickets}) >= 3, category


def test_unknown_split_is_refused():
    with pytest.raises(ValueError, match="train, validation, benchmark"):
        load_tickets("test")


def test_no_placeholder_is_left(splits):
    assert not [t.query for t in splits["train"] if set("{}[]") & set(t.query)]


def test_expand_and_slips():
    rng = random.Random(0)
    assert {noise.expand("[a|b] c", rng) for _ in range(30)} == {"a c", "b c"}
    assert noise.expand("[a [b|c]|d]", rng) in {"a b", "a c", "d"}
    assert noise.add_slips("{order} abc", 1.0, rng) == "{order} abc"
    slipped = noise.slip("refund", rng)
    assert slipped[0] == "r"
    assert abs(len(slipped) - 6) <= 1


def test_no_leak_between_benchmark_and_the_rest(splits):
    benchmark = [t.query for t in splits["benchmark"]]
    assert leak.find_leaks(benchmark, [t.query for t in (*splits["train"], *splits["validation"])]) == []


def test_no_leak_in_the_chats_that_language_models_learn_from(splits):
    """The committed samples of the training chats; the system prompt is in each of them."""
    texts = set()
    for name in ("sft_train", "sft_validation"):
        lines = (project_root() / f"data/samples/{name}.jsonl").read_text(encoding="utf-8").splitlines()
        texts |= {m["content"] for line in lines for m in json.loads(line)["messages"]}
    assert len(texts) > 100
    assert leak.find_leaks([t.query for t in splits["benchmark"]], sorted(texts)) == []


def test_no_leak_between_validation_and_training(splits):
    found = leak.find_leaks([t.query for t in splits["validation"]], [t.query for t in splits["train"]])
    assert found == []


def wordings(template):
    """A template with its first alternatives, with its second ones, and so on, until each was used."""
    most = max([len(own.split("|")) for own in re.findall(r"\[([^\[\]]*)\]", template)], default=1)
    for turn in range(most):
        plain = template
        while "[" in plain:
            plain = re.sub(
                r"\[([^\[\]]*)\]", lambda m, t=turn: m[1].split("|")[t % len(m[1].split("|"))], plain
            )
        yield re.sub(r"\{[a-z]+\}", "100001", plain)


def test_no_template_comes_close_to_the_benchmark_even_without_noise(splits):
    # Noise can hide a likeness that another seed of the generator would show.
    texts = []
    for path in sorted((project_root() / "data/desk/templates").glob("*.yaml")):
        for own in yaml.safe_load(path.read_text(encoding="utf-8")).values():
            texts += [text for template in own for text in wordings(template)]
    assert len(texts) > 4000
    assert leak.find_leaks([t.query for t in splits["benchmark"]], texts) == []


def test_wordings_use_each_alternative():
    assert list(wordings("[a|b|c] x [d|e] {order}")) == ["a x d 100001", "b x e 100001", "c x d 100001"]


QUERY = "The courier claims my house does not exist. Order 149850. It's the one with the blue door, Tess."


@pytest.mark.parametrize(
    ("planted", "kind"),
    [
        (QUERY, "exact"),
        (QUERY.upper().replace(".", " !!"), "exact"),
        (QUERY.replace("149850", "104777").replace("Tess", "Amir"), "masked"),
        (QUERY.replace("c", "\u0441").replace("o", "\u043e"), "exact"),
        (QUERY.replace("e", "e\u0301"), "exact"),
        (QUERY.replace("o", "o\u200b"), "exact"),
        ("".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in QUERY), "exact"),
        (QUERY.replace("claims", "says").replace("Order 149850", "It is order 140001"), "near"),
        (
            "Hello, I have waited for ever and nobody answers me at all, so here again: "
            + QUERY
            + " "
            + "Please " * 20,
            "contained",
        ),
    ],
)
def test_planted_variants_are_found(planted, kind):
    found = leak.find_leaks([QUERY], ["Something else entirely.", planted])
    assert [item.kind for item in found] == [kind]


def test_different_messages_are_not_leaks():
    other = "The courier left my parcel 104777 at the wrong door."
    assert leak.find_leaks([QUERY], [other]) == []
