"""The evaluation protocol: workers, lost trials, refused splits, tables by hand."""

import sys

import pytest

from rlcas_utils import benchmark, statistics
from rlcas_utils.benchmark.tables import telecom_table
from rlcas_utils.telecom import agents, report, tau2
from rlcas_utils.telecom.conversation import TelecomConversation
from rlcas_utils.telecom.customers import scripted_customer
from rlcas_utils.telecom.demonstrations import ContaminationError
from rlcas_utils.telecom.evaluation import evaluate, play_agent, puppet_customer
from rlcas_utils.telecom.scoring import score
from rlcas_utils.telecom.session import DONE, RESPOND, CustomerFailure, Session

TEST = tau2.tasks("test")


def _expert_rows(tasks, workers):
    """Rows and transcripts of the expert, played and opened by so many threads."""
    transcripts = []

    def play(conversations):
        play_agent(agents.expert, conversations, seed=3, workers=workers)
        transcripts.extend(
            [
                (m.role, m.content, [c.name for c in getattr(m, "tool_calls", None) or []])
                for m in c.session.messages
            ]
            for c in conversations
        )

    return evaluate("expert", tasks, play, num_trials=2, seed=5, workers=workers), transcripts


@pytest.fixture
def _impatient_threads():
    """Threads are switched a thousand times as often as usual, so that a race has its chance."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("_impatient_threads")
def test_seeds_give_the_same_results_for_one_and_eight_workers():
    """Case 34, first part: six tasks, a spoiled VPN among them, two trials each."""
    with_vpn = [task for task in TEST if "bad_vpn" in task.id][:3]
    tasks = [*with_vpn, *[task for task in TEST if task not in with_vpn][::12][:3]]
    assert len(tasks) == 6
    one, eight = _expert_rows(tasks, 1), _expert_rows(tasks, 8)
    assert one == eight
    assert {row["reward"] for row in one[0]} == {1.0}
    first, second = one[1][0], one[1][6]  # the same task, another trial: another customer's wording
    assert first != second


def test_an_episode_survives_that_another_one_spoils_the_vpn():
    """tau2 keeps the VPN's details on the class; without the repair this evaluation cannot replay."""
    quiet = next(task for task in TEST if "bad_vpn" not in task.id)
    spoiled = next(task for task in TEST if "bad_vpn" in task.id)
    session = Session(quiet, puppet_customer(quiet, 0))
    session.step(RESPOND, {"content": "Please run connect_vpn with {}."})
    seen = session.step(RESPOND, {"content": "Please run check_vpn_status with {}."})
    assert "excellent" in seen.text
    Session(spoiled, puppet_customer(spoiled, 0))
    session.step(DONE)
    assert score(session).flags == ()


# -- endings and lost trials -----------------------------------------------------------------------------


class _Down(type(puppet_customer(TEST[0], 0))):
    """A customer whose server is down."""

    def generate_next_message(self, message, state):
        raise CustomerFailure("503")


def test_one_finished_trial_of_forty_is_no_headline():
    """Case 30: 39 of 40 trials are lost to the customer's server."""
    tasks = TEST[:10]

    def make_customer(task, seed):
        up = task is tasks[0] and seed == 1000
        return puppet_customer(task, 0) if up else _Down(task.user_scenario)

    def play(conversations):
        play_agent(agents.gold, conversations, 0)

    rows = evaluate("gold", tasks, play, num_trials=4, make_customer=make_customer, customer="puppet")
    assert sum(row["end"] == "infrastructure_error" for row in rows) == 39
    assert {row["lost"] for row in rows} == {"", "CustomerFailure: 503"}
    assert benchmark.coverage(rows) == (1, 40)
    metrics = benchmark.telecom_metrics(rows)
    assert {name.removeprefix("telecom/gold/"): m["value"] for name, m in metrics.items()} == {
        "coverage": 0.025,
        "avg_if_lost_trials_failed": 0.025,
    }
    notes = telecom_table({"gold": rows}).iloc[0]["note"]
    assert notes == "1 of 40 evaluated: no headline"
    shown = {line["end"]: line["episodes"] for line in report.ending_table(rows)}
    assert (shown["infrastructure_error"], shown["user_stop"] + shown["agent_stop"]) == (39, 1)


def _row(task_id="t", trial=0, **fields):
    usual = {
        "agent": "base",
        "task_id": task_id,
        "trial": trial,
        "seed": 1000 + trial,
        "reward": 0.0,
        "group": "fixable",
        "num_faults": 2,
        "turns": 10,
        "end": "user_stop",
        "transferred": False,
        "first_transfer_turn": None,
        "tool_errors": {},
        "flags": [],
        "partial": 0.0,
        "customer": "scripted",
        "policy_arm": "compact",
    }
    return usual | fields


def test_limits_score_nothing_and_are_shown_apart():
    """Case 30: four trials at tau2's message limit, four at its error limit."""
    rows = [_row("a", k, end="max_steps") for k in range(4)]
    rows += [_row("b", k, end="too_many_errors") for k in range(4)]
    shown = {line["end"]: (line["episodes"], line["scored"]) for line in report.ending_table(rows)}
    assert {end: line for end, line in shown.items() if line[0]} == {
        "max_steps": (4, False),
        "too_many_errors": (4, False),
    }
    assert benchmark.telecom_metrics(rows)["telecom/base/avg@4"]["value"] == 0.0
    with pytest.raises(ValueError, match="rows end as bored"):
        report.ending_table([_row(end="bored")])


def test_mistakes_by_kind_by_hand():
    """Case 29: the customer's tools called by the agent are a line of their own, per agent."""
    rows = [
        _row("a", 0, turns=10, tool_errors={"user_tool_called_by_agent": 3, "unknown_tool": 1}),
        _row("a", 1, turns=30, tool_errors={"user_tool_called_by_agent": 1}),
        _row("b", 0, turns=10),
        _row("b", 1, turns=0, tool_errors={"bad_json": 0}),
    ]
    assert report.error_table(rows) == [
        {"kind": "user_tool_called_by_agent", "count": 4, "per_100_turns": 8.0, "episodes": 0.5},
        {"kind": "unknown_tool", "count": 1, "per_100_turns": 2.0, "episodes": 0.25},
    ]
    assert report.error_table([_row(turns=0)]) == []


def test_share_solved_by_number_of_faults_by_hand():
    rows = [_row("a", k, num_faults=2, reward=float(k > 0)) for k in range(3)]
    rows += [_row("b", k, num_faults=2, reward=1.0) for k in range(3)]
    rows += [_row("c", k, num_faults=9) for k in range(3)]
    two, nine = report.fault_table(rows)
    assert (two["faults"], two["tasks"], two["attempts"]) == (2, 2, 6)
    assert two["solved"] == pytest.approx(5 / 6)  # tasks solved 2/3 and 3/3 of the time
    assert (two["solved_low"], two["solved_high"]) == (0.0, 1.0)  # Student's t: two tasks say next to nothing
    assert (nine["tasks"], nine["solved"]) == (1, 0.0)
    wilson = statistics.wilson(2 / 3, 1)  # 2/3 of one task, not two of three tasks
    assert (round(wilson.low, 2), round(wilson.high, 2)) == (0.09, 0.97)
    shown = report.breakdown({"base": rows[:6], "grpo": rows[:3]})
    assert shown["solved, by number of faults"] == {
        "base": {2: "0.83 [0.00, 1.00]"},
        "grpo": {2: "0.67 [0.09, 0.97]"},
    }
    assert shown["episodes, by ending"]["grpo"]["user_stop"] == 3
    assert list(shown) == [
        "solved, by number of faults",
        "mistakes per 100 turns",
        "episodes, by ending",
        "episodes, by flag",
    ]


def test_flags_are_counted_beside_the_reward():
    """Case 32, in the report."""
    rows = [_row("a", 0, reward=1.0, flags=["db_mismatch_but_reward_1"]), _row("a", 1, reward=1.0)]
    counts = {line["flag"]: line["episodes"] for line in report.flag_table(rows)}
    assert counts == {"stopped_before_write": 0, "db_mismatch_but_reward_1": 1, "evaluation_error": 0}
    assert benchmark.telecom_metrics(rows)["telecom/base/avg@2"]["value"] == 1.0


@pytest.mark.parametrize("field", ["agent", "customer", "policy_arm"])
def test_rows_of_two_tests_are_not_averaged(field):
    rows = [_row("a", 0), _row("a", 1, **{field: "full"})]
    for table in (report.fault_table, report.error_table, report.ending_table, report.flag_table):
        with pytest.raises(ValueError, match=f"2 values of {field}"):
            table(rows)
    assert report.setting(rows[:1]) == {"agent": "base", "customer": "scripted", "policy_arm": "compact"}
    with pytest.raises(ValueError, match="none"):
        report.setting([])


# -- which tasks, how many trials ------------------------------------------------------------------------


def _leave(conversations):
    play_agent(lambda task, seed: lambda seen: ("", "done", {}), conversations, 0)


@pytest.mark.parametrize(("split", "label"), [("base", "74/114"), ("train", "74/74"), ("small", "20/20")])
def test_a_split_with_training_tasks_is_refused(split, label):
    """Case 35, first half: the benchmark's default split is 65 % training tasks."""
    with pytest.raises(ContaminationError, match=f"contaminated {label}"):
        evaluate("grpo", tau2.tasks(split), _leave, num_trials=1)


def test_the_full_set_and_no_split_at_all_are_refused():
    """Case 35, first half."""
    with pytest.raises(ContaminationError, match="contaminated 2245/2285"):
        evaluate("grpo", tau2.tasks("full"), _leave, num_trials=1)
    every_task = tau2.registry.get_tasks_loader("telecom")(None)  # what tau2 loads if no split is named
    with pytest.raises(ContaminationError, match="contaminated 2245/2285"):
        evaluate("grpo", every_task, _leave, num_trials=1)


def test_train_and_test_share_no_task_and_no_combination_of_faults():
    """Case 35: base is exactly train and test together, and no test task has a sibling in train."""
    train, test = set(tau2.split_ids("train")), set(tau2.split_ids("test"))
    assert not train & test
    assert train | test == set(tau2.split_ids("base"))
    combinations = [{tau2.parse_task_id(i)[:2] for i in ids} for ids in (train, test)]
    assert not combinations[0] & combinations[1]


def test_known_bad_tasks_are_left_out_and_printed(capsys):
    """Case 32: an exclusion list is printed whenever it is used."""
    rows = evaluate("base", TEST[:4], _leave, num_trials=2, known_bad=[TEST[1].id, TEST[3].id])
    assert {row["task_id"] for row in rows} == {TEST[0].id, TEST[2].id}
    printed = capsys.readouterr().out
    assert printed == (f"2 of 4 tasks left out as known to be bad:\n  {TEST[1].id}\n  {TEST[3].id}\n")
    evaluate("base", TEST[:1], _leave, num_trials=1)
    assert capsys.readouterr().out == ""
    with pytest.raises(ValueError, match="not among the 4 tasks, no such task"):
        evaluate("base", TEST[:4], _leave, num_trials=1, known_bad=["no such task"])


def test_pass_rates_over_unequal_trials_and_large_k():
    """Case 41: successes 4, 2, 0 of four trials; k above n; tasks with 4, 4 and 3 trials; k = 1."""
    solved = {"a": 4, "b": 2, "c": 0}
    rows = [_row(t, k, reward=float(k < n)) for t, n in solved.items() for k in range(4)]
    two, note = benchmark.pass_estimates(rows, k=2)
    values = {name: round(e.value, 4) for name, e in two.items()}
    assert values == {"avg@4": 0.5, "pass@2": 0.6111, "pass^2": 0.3889}
    assert note == ""
    with pytest.raises(ValueError, match="k = 5 with 4 trials"):
        statistics.pass_hat_k(4, 2, 5)
    short, note = benchmark.pass_estimates(rows[:-1], k=4)
    assert set(short) == {"avg@4", "pass@3", "pass^3"}
    assert note == "1 of 3 tasks have fewer than 4 trials, so k goes up to 3 only."
    one, _ = benchmark.pass_estimates(rows, k=1)
    assert {e.value for e in one.values()} == {0.5}


def test_greedy_attempts_are_warned_about():
    """Case 41: with k > 1, greedy decoding repeats itself."""
    with pytest.warns(UserWarning, match="temperature is 0 and num_trials 2"):
        evaluate("base", TEST[:1], _leave, num_trials=2, temperature=0)
    evaluate("base", TEST[:1], _leave, num_trials=1, temperature=0)
    evaluate("base", TEST[:1], _leave, num_trials=2, temperature=0.4)


def test_the_protocols_figures_come_out_of_rows():
    """All that the protocol reports, on two fixable tasks and a transfer task, three attempts each."""
    rows = [_row("a", k, reward=float(k < 2), turns=8) for k in range(3)]
    rows += [_row("b", k, num_faults=5, end="max_turns", turns=45) for k in range(3)]
    moved = {"transferred": True, "group": "transfer", "reward": 1.0}
    rows += [_row("c", k, first_transfer_turn=6 + k, **moved) for k in range(3)]
    metrics = {
        n.removeprefix("telecom/base/"): m["value"] for n, m in benchmark.telecom_metrics(rows).items()
    }
    assert metrics["avg@3"] == pytest.approx(5 / 9)
    assert metrics["pass@3"] == pytest.approx(2 / 3)
    assert metrics["pass^3"] == pytest.approx(1 / 3)
    assert metrics["fixable/avg@3"] == pytest.approx(1 / 3)
    assert metrics["transfer/avg@3"] == 1.0
    assert metrics["transfer_rate"] == pytest.approx(1 / 3)
    assert metrics["first_transfer_turn_median"] == 7
    assert benchmark.histogram(rows) == {"0/3": 1, "1/3": 0, "2/3": 1, "3/3": 1}


def test_rows_name_customer_and_policy_arm():
    rows = evaluate("base", TEST[:1], _leave, num_trials=1, policy_arm="full", customer="scripted")
    assert (rows[0]["customer"], rows[0]["policy_arm"]) == ("scripted", "full")
    conversation = TelecomConversation(TEST[0], scripted_customer(TEST[0], 0), "full")
    assert "Data Saver" in conversation.messages[0]["content"]
