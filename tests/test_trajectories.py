"""Expert episodes: schema with named damage, filter, duplicates, balance, split, rendering."""

import copy
import json
from dataclasses import replace

import pytest

from rlcas_utils import desk
from rlcas_utils.desk.rewards import fire
from rlcas_utils.parsing import Parsed, parse_action
from rlcas_utils.trajectories import (
    Step,
    Trajectory,
    TrajectoryError,
    balance,
    check_chat,
    collect,
    drop_reason,
    parse_trajectory,
    read_chats,
    read_trajectories,
    reason,
    select,
    split_by_template,
    to_chat,
    write_chats,
    write_trajectories,
)
from rlcas_utils.trajectories.rendering import revealed
from rlcas_utils.trajectories.selection import wasted_steps


def make(
    ticket="t1",
    category="order",
    template="a",
    query="Where is order 123456?",
    actions=(0, 7),
    ending=None,
    resolved=True,
    truncated=False,
    seed=0,
):
    """A two-signal episode: tools give 1, the ending gives what `ending` fires."""
    ending = {"resolution": 1.0, "right_route": 1.0} if ending is None else ending
    signals = [fire(relevant_tool=1.0) for _ in actions[:-1]] + [fire(**ending)]
    result = {"service": "order", "ok": True, "status": "hold_fraud", "warranty": "valid"}
    steps = tuple(
        Step(action, sum(s.values()), s, result, "order 123456: status hold_fraud")
        for action, s in zip(actions, signals, strict=True)
    )
    total = sum(step.reward for step in steps)
    return Trajectory(
        ticket,
        category,
        "order_status",
        template,
        "sac",
        seed,
        query,
        steps,
        total,
        resolved,
        truncated,
        "resolved",
    )


@pytest.fixture(scope="module")
def expert_episodes():
    tickets = desk.load_tickets("train")[:40]
    return collect(lambda seed: desk.agents.OracleAgent(), tickets, seeds=(0,))


def test_round_trip_through_the_file(tmp_path, expert_episodes):
    path = tmp_path / "expert.jsonl"
    assert write_trajectories(path, expert_episodes) == 40
    assert read_trajectories(path) == expert_episodes
    action = json.loads(path.read_text(encoding="utf-8").splitlines()[0])["steps"][0]["action"]
    assert type(action) is int


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda row: row.pop("query"), "field query is missing"),
        (lambda row: row.update(extra=1), "field extra is not part of the schema"),
        (lambda row: row.update(schema="rlcas-trajectory/0"), "field schema is 'rlcas-trajectory/0'"),
        (lambda row: row.update(resolved=1), "field resolved is 1, expected true or false"),
        (lambda row: row.update(steps=[]), "field steps is \\[\\], expected a list"),
        (
            lambda row: row["steps"][1].update(action=13),
            "field steps\\[1\\].action is 13, expected an action id 0-12",
        ),
        (lambda row: row["steps"][1].update(action=True), "field steps\\[1\\].action is True"),
        (
            lambda row: row["steps"][0].update(reward=99.0),
            "field steps\\[0\\].reward is 99.0, its signals sum to 1.0",
        ),
        (lambda row: row["steps"][0]["signals"].pop("timeout"), "field steps\\[0\\].signals"),
        (lambda row: row.update({"return": 99.0}), "field return is 99.0"),
    ],
)
def test_damage_is_named(tmp_path, damage, message):
    path = tmp_path / "expert.jsonl"
    good, bad = make().to_json(), copy.deepcopy(make().to_json())
    damage(bad)
    path.write_text(json.dumps(good) + "\n" + json.dumps(bad) + "\n", encoding="utf-8")
    with pytest.raises(TrajectoryError, match=f"expert.jsonl line 2: {message}"):
        read_trajectories(path)


def test_cut_off_line_is_named(tmp_path):
    path = tmp_path / "expert.jsonl"
    path.write_text(json.dumps(make().to_json())[:50], encoding="utf-8")
    with pytest.raises(TrajectoryError, match=r"expert\.jsonl line 1: "):
        read_trajectories(path)


@pytest.mark.parametrize(
    ("episode", "reason_expected"),
    [
        (make(), None),
        (make(truncated=True), "truncated"),
        (
            make(ending={"right_route": 1.0, "wrong_ending": 1.0}, resolved=False),
            "right ending without the evidence",
        ),
        (make(ending={"wrong_ending": 1.0}, resolved=False), "wrong ending"),
        (make(ending={"resolution": 0.3, "right_route": 1.0}, actions=(7,)), None),
        (make(ending={"resolution": 0.29, "right_route": 1.0}, actions=(7,)), "return too low"),
    ],
)
def test_filter_rules(episode, reason_expected):
    # The last two lie at the threshold: 3.0 + 2.0 is kept, 2.9 + 2.0 is not.
    assert drop_reason(episode, min_reward=5.0) == reason_expected


def test_selection_drops_duplicates_and_keeps_the_better_one():
    first = make(ticket="t1", query="Where is order 123456?")
    same_words = make(ticket="t2", query="where is ORDER 999111 ?")
    other_way = make(ticket="t3", query="Where is order 123456?", actions=(0, 4, 7))
    other_words = make(ticket="t4", query="Where is my parcel?")
    kept, report = select([first, same_words, other_way, other_words], 5.0, max_per_category=10)
    assert sorted(t.ticket_id for t in kept) == ["t1", "t3", "t4"]
    assert report.dropped == {"duplicate": {"order": 1}}
    assert report.rows() == [{"fate": "kept", "episodes": 3}, {"fate": "dropped: duplicate", "episodes": 1}]


def test_every_episode_is_accounted_for(expert_episodes):
    kept, report = select([*expert_episodes, *expert_episodes], 5.0, max_per_category=2)
    dropped = sum(counts.total() for counts in report.dropped.values())
    assert len(kept) + dropped == report.num_collected == 80
    assert max(report.kept.values()) <= 2


def test_balance_takes_templates_in_turn():
    many = [make(ticket=f"a{i}", template="a") for i in range(5)] + [make(ticket="b0", template="b")]
    assert [t.ticket_id for t in balance(many, 3)] == ["a0", "b0", "a1"]
    with pytest.raises(ValueError, match="max_per_category is 0"):
        balance(many, 0)


def test_clean_episodes_come_before_wasteful_ones():
    clean, clumsy = make(ticket="z", template="a"), make(ticket="a", template="a", actions=(0, 0, 7))
    wasteful = replace(clumsy.steps[1], signals=fire(redundant_call=1.0), reward=-1.0)
    clumsy = replace(clumsy, steps=(clumsy.steps[0], wasteful, clumsy.steps[2]))
    assert (wasted_steps(clean), wasted_steps(clumsy)) == (0, 1)
    kept, _ = select([clumsy, clean], 5.0, max_per_category=1)
    assert [t.ticket_id for t in kept] == ["z"]


def test_split_shares_no_template_and_covers_every_category():
    episodes = [
        make(ticket=f"{c}{t}{i}", category=c, template=f"{c}-{t}")
        for c in ("order", "auth")
        for t in "abcd"
        for i in "xy"
    ]
    train, validation = split_by_template(episodes, 0.25, seed=0)
    assert len(train) + len(validation) == 16
    assert len(validation) == 4
    assert {t.template_id for t in train}.isdisjoint(t.template_id for t in validation)
    assert {t.category for t in validation} == {"order", "auth"}
    with pytest.raises(ValueError, match="no category with two templates"):
        split_by_template([make()], 0.25, seed=0)


def test_chat_is_in_the_output_contract(expert_episodes):
    for episode in expert_episodes:
        row = to_chat(episode)
        assert check_chat(row) is None
        roles = [message["role"] for message in row["messages"]]
        assert roles == ["system"] + ["user", "assistant"] * len(episode.steps)
        answers = [parse_action(m["content"], 13) for m in row["messages"] if m["role"] == "assistant"]
        assert all(isinstance(answer, Parsed) and not answer.repaired for answer in answers)
        assert tuple(answer.action_id for answer in answers) == episode.actions
        assert all(len(answer.reasoning.split()) <= 25 for answer in answers)
        results = [m["content"] for m in row["messages"][3::2]]
        assert results == [step.text for step in episode.steps[:-1]]


def test_reasons_name_the_facts_seen_and_nothing_later():
    episode = make(actions=(0, 11))
    assert "an order number" in reason(episode, 0)
    assert "hold fraud" not in reason(episode, 0)
    assert "status hold fraud" in reason(episode, 1)
    assert reason(episode, 1) == reason(make(actions=(0, 11)), 1)


def test_reasons_name_the_facts_that_the_handbook_asks_about():
    signals = fire(new_information=1.0)
    account = {"status": "active", "profile": "sync_error", "balance": "due", "recent_orders": "many"}
    step = Step(2, 0.5, signals, {"service": "customer", "ok": True, **account}, "account: ...")
    assert revealed(step, "refund_request") == "recent orders many"
    assert revealed(step, "account_close") == "profile sync error, balance due, status active"


def test_reasons_vary(expert_episodes):
    openings = {reason(episode, 0) for episode in expert_episodes}
    assert len(openings) >= 10


def test_damaged_chat_names_file_line_and_field(tmp_path, expert_episodes):
    path, row = tmp_path / "train.jsonl", to_chat(expert_episodes[0])
    write_chats(path, [row])
    assert read_chats(path) == [row]
    broken = copy.deepcopy(row)
    broken["messages"][2]["content"] = "I would look it up."
    path.write_text(json.dumps(row) + "\n" + json.dumps(broken) + "\n", encoding="utf-8")
    with pytest.raises(TrajectoryError, match=r"train\.jsonl line 2: field messages\[2\].content breaks"):
        read_chats(path)


def test_unknown_field_is_refused_by_the_reader_of_one_value():
    with pytest.raises(TrajectoryError, match="field line is list"):
        parse_trajectory([])
