"""The scripted expert: it solves every base task, one device action a message, and its thoughts suffice."""

import json
import random
from collections import Counter, defaultdict

import pytest

from rlcas_utils.telecom import tau2
from rlcas_utils.telecom.customer import ScriptedCustomer, understand
from rlcas_utils.telecom.expert import Expert, reading
from rlcas_utils.telecom.expert.notes import Notes
from rlcas_utils.telecom.expert.wording import MESSAGES, TRANSFER_NOTICE, say
from rlcas_utils.telecom.session import Session

BASE = tau2.tasks("base")
AGENT_TOOLS = {tool.name for tool in tau2.make_environment().get_tools()}


def serve(task, *, expert=None, **customer):
    """One episode: (reward, end, [(observation, action)])."""
    expert = expert or Expert()
    session, turns = Session(task, ScriptedCustomer(task.user_scenario, **customer)), []
    while not session.done:
        observation = session.observation.text
        action = expert.act(observation)
        turns.append((observation, action))
        session.step(action.name, action.arguments)
    info = tau2.evaluate_simulation(
        simulation=session.simulation(),
        task=task,
        evaluation_type=tau2.EvaluationType.ALL,
        solo_mode=False,
        domain=tau2.DOMAIN,
    )
    return info.reward, session.end, turns


@pytest.fixture(scope="module")
def episodes():
    return {task.id: serve(task) for task in BASE}


def calls(turns, name):
    return [action.arguments for _, action in turns if action.name == name]


def test_all_114_base_tasks_are_solved(episodes):
    assert Counter(reward for reward, _, _ in episodes.values()) == {1.0: 114}


def test_every_episode_ends_by_choice_and_within_30_turns(episodes):
    assert {end for _, end, _ in episodes.values()} == {"agent_stop", "user_stop"}
    assert max(len(turns) for _, _, turns in episodes.values()) <= 30


def test_only_the_agents_own_tools_are_used(episodes):
    names = {action.name for _, _, turns in episodes.values() for _, action in turns}
    assert names <= AGENT_TOOLS | {"respond", "done"}


def test_each_message_asks_for_one_device_action_at_most(episodes):
    said = {args["content"] for _, _, turns in episodes.values() for args in calls(turns, "respond")}
    assert max(len(understand(text)) for text in said) == 1


def test_thought_and_observation_decide_the_next_turn(episodes):
    """A policy that sees only its last thought and the last observation can do what the expert does."""
    decisions = defaultdict(set)
    for _, _, turns in episodes.values():
        last = ""
        for observation, action in turns:
            decision = (action.thought, action.name, json.dumps(action.arguments))
            decisions[last, observation].add(decision)
            last = action.thought
    assert {key: found for key, found in decisions.items() if len(found) > 1} == {}


def test_thoughts_are_short_and_of_few_words(episodes):
    thoughts = {action.thought for _, _, turns in episodes.values() for _, action in turns}
    words = Counter(
        word for thought in thoughts for word in thought.replace("|", " ").replace(",", " ").split()
    )
    assert len(words) <= 60
    lengths = sorted(len(thought.replace("|", "").split()) for thought in thoughts)
    assert lengths[-1] <= 15


def test_transfer_is_announced_after_the_tool_call(episodes):
    transferred = [turns for _, _, turns in episodes.values() if calls(turns, "transfer_to_human_agents")]
    assert len(transferred) == 20  # the base split has 20 tasks that must be transferred
    for turns in transferred:
        assert turns[-1][1].arguments == {"content": TRANSFER_NOTICE}
        assert turns[-2][1].name == "transfer_to_human_agents"


def test_line_is_resumed_only_after_the_bill_shows_as_paid(episodes):
    resumed = [turns for _, _, turns in episodes.values() if calls(turns, "resume_line")]
    assert resumed
    for turns in resumed:
        seen = [observation for observation, action in turns if action.name == "resume_line"]
        assert json.loads(seen[0])["status"] == "Paid"


UNPAID = [
    "My phone says 'No Service'.",
    "My phone number is 555-000-1111.",
    json.dumps({"customer_id": "C7", "line_ids": ["L7"], "bill_ids": ["B7"]}),
    json.dumps({"line_id": "L7", "phone_number": "555-000-1111", "status": "Suspended"}),
    "My status bar shows: 📵 No Signal | 📵 Data Disabled.",
    "Your SIM card is active and working.",
    "It says: Current APN Name: internet.",
    json.dumps({"bill_id": "B7", "status": "Overdue", "total_due": 12.5}),
    "Payment request sent",
    "I'd rather wait until tomorrow.",
    json.dumps({"bill_id": "B7", "status": "Awaiting Payment", "total_due": 12.5}),
]


def test_unpaid_bill_is_asked_for_again_and_never_resumed():
    expert = Expert()
    actions = [expert.act(observation) for observation in UNPAID]
    assert actions[7].arguments == {"customer_id": "C7", "bill_id": "B7"}
    assert "bill B7" in actions[8].arguments["content"]
    assert actions[-1].arguments["content"].startswith("The bill isn't paid yet.")
    for _ in range(4):
        actions += [expert.act("No."), expert.act(UNPAID[-1])]
    names = [action.name for action in actions]
    assert "resume_line" not in names
    assert "transfer_to_human_agents" in names


def test_refuel_is_exactly_two_gigabytes_once(episodes):
    for task_id, (_, _, turns) in episodes.items():
        amounts = [args["gb_amount"] for args in calls(turns, "refuel_data")]
        assert amounts == ([2.0] if "data_usage_exceeded" in task_id else [])


SAMPLE = BASE[::6]


@pytest.mark.parametrize(
    ("expert", "customer"),
    [
        ({"seed": 5, "variety": 3}, {"seed": 5}),
        ({"seed": 1, "variety": 2}, {"seed": 2, "strict_one_action": True, "stop_style": "direct"}),
        ({"single": False}, {"seed": 3}),
        ({"seed": 4, "variety": 3}, {"seed": 4, "misunderstanding": 0.3, "small_talk": 1.0}),
    ],
)
def test_other_wordings_and_other_tempers(expert, customer):
    solved = [serve(task, expert=Expert(**expert), **customer)[0] for task in SAMPLE]
    assert solved == [1.0] * len(SAMPLE)


def test_joining_steps_saves_turns():
    task = max(BASE, key=lambda task: len(task.evaluation_criteria.actions))
    assert len(serve(task, expert=Expert(single=False))[2]) < len(serve(task)[2])


def test_same_seeds_same_transcript():
    first, second = (serve(BASE[0], expert=Expert(9, variety=3), seed=9)[2] for _ in range(2))
    assert first == second


@pytest.mark.parametrize("step", sorted(MESSAGES))
def test_all_wordings_of_a_step_mean_the_same(step):
    meanings = {
        tuple(str(r) for r in understand(text.format(bill="B1", price=4.0))) for text in MESSAGES[step]
    }
    assert len(meanings) == 1
    assert len(next(iter(meanings))) <= 1


def test_variety_one_always_says_the_same():
    said = {say("read bar", random.Random(seed), 1) for seed in range(20)}
    assert said == {MESSAGES["read bar"][0]}
    assert len({say("read bar", random.Random(seed), 3) for seed in range(20)}) == 3


def test_variety_below_one_is_refused():
    with pytest.raises(ValueError, match="Set it to 1 or more"):
        Expert(variety=0)


def test_thought_spells_out_line_and_open_work():
    notes = Notes("mms", {"bill_ids": ["B1", "B2"]})
    assert notes.thought("read line 1") == "mms | bill B2 | next: read line 1"
    notes.line = {"status": "Suspended", "contract_end_date": "2026-01-01", "roaming_enabled": True}
    notes.todo = {"data", "airplane"}
    assert notes.thought("airplane off") == (
        "mms | line suspended, bill B2 | todo airplane, data | next: airplane off"
    )
    notes.line["contract_end_date"] = "2025-01-31"
    assert notes.expired
    assert "line expired" in notes.thought("transfer")


def test_bar_is_believed_only_while_it_shows_data():
    notes = Notes("data", todo={"bar"})
    notes.see_bar("📶¹ Poor | 2G | 📵 Data Disabled | 🔋 80%")
    assert notes.todo == {"bar"}
    notes.see_bar("📶¹ Poor | 3G | 📱 Data Enabled | 🔽 Data Saver | 🔒 VPN Connected")
    assert notes.todo == {"mode", "saver", "vpn"}
    notes.see_bar("📶⁴ Excellent | 5G | 📱 Data Enabled | 🔒 VPN Connected")
    assert notes.todo == {"vpn"}


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        (reading.has_signal, "📶⁴ Excellent | 5G", True),
        (reading.has_signal, "📵 No Signal", False),
        (reading.has_signal, "✈️ Airplane Mode | 🔋 80%", False),
        (reading.mms_works, "your messaging app cannot send MMS messages.", False),
        (reading.mms_works, "your messaging app can send MMS messages.", True),
        (reading.is_abroad, "I'm currently at home in the United States.", False),
        (reading.is_abroad, "I'm currently abroad in France.", True),
        (reading.missing_permissions, "App 'messaging' has permission for: sms, phone.", ["storage"]),
        (
            reading.missing_permissions,
            "App 'messaging' currently has no permissions granted.",
            ["storage", "sms"],
        ),
        (reading.no_connection, "Speed test failed: No Connection.", True),
        (reading.record, "Error: not found", {}),
        (reading.issue, "my phone says 'No Service'", "service"),
    ],
)
def test_reading(question, text, expected):
    assert question(text) == expected
