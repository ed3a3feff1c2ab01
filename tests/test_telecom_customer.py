"""The scripted customer: what it understands, what it does, and that nothing makes it fall over."""

import json
import random
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from rlcas_utils.telecom import tau2
from rlcas_utils.telecom.customer import Request, ScriptedCustomer, phrases, understand
from rlcas_utils.telecom.customer.clauses import MAX_CHARACTERS, read_clauses
from rlcas_utils.telecom.customer.device import CHECK_TOOLS, DEVICE_TOOLS, READING_TOOLS, SWITCH_TOOLS
from rlcas_utils.telecom.customer.phone import Phone
from rlcas_utils.telecom.customer.scenario import read_scenario
from rlcas_utils.telecom.session import Session

# One message a line: `expected` was written before the message was first tried; `first_try` says whether it
# was understood exactly then, before anything was changed for it; `weak` marks what still is not.
MESSAGES = [
    json.loads(line)
    for line in (Path(__file__).parent / "telecom_messages.jsonl").read_text(encoding="utf-8").splitlines()
]
SPEED_WISHES = (
    "You will consider the issue resolved only when speed test returns excellent internet speed. You are "
    "willing to refuel 2.0 GB of data if necessary, but you do not want to change your mobile data plan."
)


def scenario(
    location="abroad in France", wishes=SPEED_WISHES, reason="Your mobile data is slow.", persona=None
):
    known = "You are Ada Example with phone number 555-000-1111." + (
        f" You are currently {location}." if location else ""
    )
    instructions = SimpleNamespace(reason_for_call=reason, known_info=known, task_instructions=wishes)
    return SimpleNamespace(instructions=instructions, persona=persona)


class Talk:
    """A customer, driven by hand: say something, feed tool results, look at the answer."""

    def __init__(self, user_scenario=None, **options):
        self.customer = ScriptedCustomer(user_scenario or scenario(), small_talk=0.0, **options)
        self.state = self.customer.get_init_state()
        self.opening = self.say("Hi! How can I help you today?")

    def say(self, text):
        message = tau2.AssistantMessage(role="assistant", content=text)
        reply, self.state = self.customer.generate_next_message(message, self.state)
        return reply.content if reply.content is not None else [call.name for call in reply.tool_calls]

    def result(self, content):
        message = tau2.ToolMessage(id="u1", role="tool", content=content, requestor="user")
        reply, self.state = self.customer.generate_next_message(message, self.state)
        return reply.content if reply.content is not None else [call.name for call in reply.tool_calls]


# -- understanding ---------------------------------------------------------------------------------------


def _as_cases():
    for row in MESSAGES:
        marks = [pytest.mark.xfail(strict=True, reason="known weak spot")] if row["weak"] else []
        yield pytest.param(
            row["text"], row["expected"], marks=marks, id=f"{row['style']}: {row['text'][:40]}"
        )


@pytest.mark.parametrize(("text", "expected"), list(_as_cases()))
def test_message_is_understood(text, expected):
    assert [str(request) for request in understand(text)] == expected


def test_message_table_is_broad_and_says_how_well_it_went_at_first():
    styles = Counter(row["style"] for row in MESSAGES)
    assert len(MESSAGES) == 275
    assert min(styles.values()) >= 6
    assert len(styles) == 13
    assert sum(row["first_try"] for row in MESSAGES) == 240  # 87 % exact at first sight
    assert sum(row["weak"] for row in MESSAGES) == 5


def test_condition_is_kept_with_the_request():
    assert understand("If you are abroad, please turn on data roaming.") == [
        Request("switch", "roaming", (("state", "on"),), condition="abroad")
    ]


def test_a_check_is_repeated_only_after_a_change():
    assert [str(r) for r in understand("Check the status bar. What does the status bar show?")] == [
        "check_status_bar"
    ]
    repeated = "Check the status bar. Turn on mobile data. Then check the status bar."
    assert [str(r) for r in understand(repeated)] == [
        "check_status_bar",
        "mobile_data=on",
        "check_status_bar",
    ]


def test_text_beyond_the_cap_is_ignored():
    assert understand("x " * (MAX_CHARACTERS // 2) + "Please reboot.") == []


def test_moods():
    clauses = read_clauses("I have enabled roaming. Is it on? If not, please turn it on.")
    assert [clause.mood for clause in clauses] == ["report", "question", "condition", "request"]


def test_device_tables_fit_the_real_tools():
    tools = {tool.name for tool in tau2.make_environment().get_user_tools()}
    assert set(DEVICE_TOOLS) == tools
    assert len(DEVICE_TOOLS) == 30
    assert len(READING_TOOLS) == 15
    assert set(CHECK_TOOLS.values()) <= READING_TOOLS
    assert set(SWITCH_TOOLS.values()) <= tools - READING_TOOLS


# -- behaviour -------------------------------------------------------------------------------------------


def test_opening_gives_the_reason_and_nothing_else():
    talk = Talk()
    assert "555" not in talk.opening
    assert "Ada" not in talk.opening
    assert "data" in talk.opening


def test_identity_is_given_when_asked_but_never_a_birth_date():
    talk = Talk()
    assert "555-000-1111" in talk.say("Please tell me your phone number so that I can find your account.")
    assert "rather not give my date of birth" in talk.say("And your date of birth, please?")


@pytest.mark.parametrize(
    ("location", "expected"),
    [("abroad in France", "I'm currently abroad in France."), ("", "haven't been travelling")],
)
def test_location(location, expected):
    assert expected in Talk(scenario(location)).say("May I ask whether you are travelling abroad right now?")


def test_customer_at_home_skips_a_step_meant_for_travellers():
    talk = Talk(scenario("at home in the United States"))
    assert talk.say("If you are abroad, please turn on data roaming.") == phrases.NOT_ABROAD


def test_result_is_reported_in_full():
    talk = Talk()
    assert talk.say("Please check your VPN status.") == ["check_vpn_status"]
    assert talk.result("VPN is turned OFF.") == "VPN is turned OFF."


def test_airplane_mode_is_looked_at_before_it_is_touched():
    talk = Talk()
    assert talk.say("Please turn Airplane Mode off.") == ["check_network_status"]
    assert talk.result("Airplane Mode: OFF\nMobile Data Enabled: Yes") == "Airplane Mode is already OFF."


def test_switch_flipped_the_wrong_way_is_flipped_back():
    talk = Talk()
    assert talk.say("Please turn Data Saver off.") == ["toggle_data_saver_mode"]
    assert talk.result("Data Saver Mode is now ON.\nStatus Bar: 🔋 80%") == ["toggle_data_saver_mode"]
    assert talk.result("Data Saver Mode is now OFF.\nStatus Bar: 🔋 80%").endswith(phrases.SWITCHED_BACK)


def test_paying_needs_a_request():
    talk = Talk()
    assert talk.say("Please make the payment.") == ["check_payment_request"]
    assert "No payment request" in talk.result("No payment request has been made.")
    talk.say("I have sent it now, please make the payment.")
    assert talk.result("You have a payment request for bill B7 of 10.0 USD.") == ["make_payment"]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Would you like to refuel data or change your plan?", "refuel 2.0 GB"),
        ("How much data would you like to refuel?", "refuel 2.0 GB"),
        ("Would you like to change to a bigger plan?", "don't want to change my plan"),
        ("Shall I refuel 2 GB for $4.00?", "Yes"),
    ],
)
def test_offers(question, expected):
    assert expected in Talk().say(question)


def test_bill_is_accepted_by_those_who_would_pay():
    payer = scenario(wishes="If the agent asks you to pay a bill, you accept.", reason="No service.")
    assert talk_yes(Talk(payer).say("Are you willing to pay the overdue bill?"))


def talk_yes(text):
    return text.startswith(("Yes", "Okay"))


def test_goal_is_announced_then_the_customer_hangs_up():
    talk = Talk()
    talk.say("Please run a speed test.")
    assert "excellent speed I wanted" in talk.result("Speed Test Result: 275.00 Mbps (Excellent). Very fast.")
    assert "###STOP###" in talk.say("Anything else?")


def test_direct_style_hangs_up_at_once():
    talk = Talk(stop_style="direct")
    talk.say("Please run a speed test.")
    assert talk.result("Speed Test Result: 275.00 Mbps (Excellent). Very fast.").endswith("###STOP###")


@pytest.mark.parametrize("speed", ["Good", "Fair", "Poor"])
def test_less_than_excellent_does_not_satisfy(speed):
    talk = Talk()
    talk.say("Please run a speed test.")
    assert "wanted" not in talk.result(f"Speed Test Result: 90.00 Mbps ({speed}). Fine.")


def test_mild_frustration_comes_once_after_the_first_change():
    talk = Talk()
    talk.say("Run a speed test and turn on mobile data.")
    talk.result("Speed test failed: No Connection.")
    first = talk.result("Mobile Data is now ON.\nStatus Bar: 🔋 80%")
    talk.say("Please turn on data roaming.")
    second = talk.result("Data Roaming is now ON.\nStatus Bar: 🔋 80%")
    assert "frustrat" in first
    assert "frustrat" not in second


def test_transfer_only_on_an_unmistakable_notice():
    talk = Talk()
    assert "TRANSFER" not in talk.say("I may need to transfer you to a human agent.")
    assert talk.say("YOU ARE BEING TRANSFERRED TO A HUMAN AGENT. PLEASE HOLD ON.") == "###TRANSFER###"


def test_customer_gives_up_when_nothing_makes_sense():
    talk = Talk()
    replies = [talk.say("The weather is lovely.") for _ in range(5)]
    assert [("OUT-OF-SCOPE" in reply) for reply in replies] == [False] * 4 + [True]


def test_customer_does_not_believe_goodbyes_for_ever():
    talk = Talk()
    for _ in range(3):
        assert talk.say("Your issue is resolved. Goodbye!") == ["run_speed_test"]
        talk.result("Speed test failed: No Connection.")
    assert "###STOP###" in talk.say("Your issue is resolved. Goodbye!")


def test_strict_customer_wants_one_step_at_a_time():
    message = "Please check your SIM card and run a speed test."
    assert Talk(strict_one_action=True).say(message) == phrases.ONE_AT_A_TIME
    assert Talk().say(message) == ["check_sim_status"]


def test_no_more_than_max_actions_of_one_message():
    talk = Talk(max_actions=1)
    assert talk.say("Please check your SIM card and your VPN.") == ["check_sim_status"]
    assert talk.result("Your SIM card is active and working.").endswith(phrases.TOO_MANY)


def test_misunderstanding_never_twice_in_a_row():
    talk = Talk(misunderstanding=1.0)
    assert talk.say("Please reboot.") in phrases.MISHEARD
    assert talk.say("Please reboot.") == ["reboot_device"]


def test_ask_back_for_a_missing_detail():
    assert Talk().say("Please change your network preference.") == phrases.WHICH_MODE


def test_phone_learns_from_results():
    phone = Phone("service")
    phone.learn("Airplane Mode is now OFF.\nStatus Bar: 📶⁴ Excellent | 5G | 📱 Data Enabled | 🔽 Data Saver")
    assert phone.known == {"airplane": "off", "data_saver": "on"}
    assert phone.goal_met is True


def test_device_result_keeps_the_status_bar():
    text = phrases.device_result("toggle_data", "Mobile Data is now ON.\nStatus Bar: 📶⁴ Excellent | 5G")
    assert text == "Mobile Data is now ON. The status bar now shows: 📶⁴ Excellent | 5G."


@pytest.mark.parametrize(
    ("options", "words"),
    [({"stop_style": "rude"}, "Use one of"), ({"misunderstanding": 1.5}, "Set it between 0 and 1")],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        ScriptedCustomer(scenario(), **options)


def test_free_text_scenario_is_refused():
    with pytest.raises(TypeError, match=r"Pass task\.user_scenario"):
        read_scenario("You are a customer.")


# -- determinism and robustness ---------------------------------------------------------------------------

ODDS = """
turn off on the please airplane mode sim card if not don't and then check tell me your status bar reset apn it
restart toggle_data grant sms storage permission mms speed test vpn pay request transfer you 2 GB would like
goodbye phone number abroad bill plan refuel . , ? ! : 1. - * ( ) ###STOP### ` [ ] é 📶 ’
"""
WORDS = [*ODDS.split(), "\\", "\x00", "\n"]


def babble(rng):
    return " ".join(rng.choice(WORDS) for _ in range(rng.choice([1, 2, 5, 12, 40]))).strip() or "?"


def chatter(seed, turns):
    """One customer against an agent that talks nonsense; new customers as the old ones hang up."""
    rng, transcript = random.Random(seed), []
    tasks = tau2.tasks("base")
    session = None
    for _ in range(turns):
        if session is None or session.done:
            task = rng.choice(tasks)
            session = Session(task, ScriptedCustomer(task.user_scenario, seed=seed))
        observation = session.step("respond", {"content": babble(rng)})
        transcript.append(observation.text)
    return transcript


def test_two_thousand_random_messages_raise_nothing():
    transcript = chatter(seed=0, turns=2000)
    assert len(transcript) == 2000
    assert all(transcript)


def test_same_seed_same_words():
    assert chatter(seed=3, turns=60) == chatter(seed=3, turns=60)


def test_seed_varies_the_opening():
    task = tau2.tasks("train")[0]
    openings = {
        Session(task, ScriptedCustomer(task.user_scenario, seed=s)).observation.text for s in range(12)
    }
    assert len(openings) > 3
