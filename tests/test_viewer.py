"""The viewer: what it shows is what happened, foreign text stays text, and pages need nothing else."""

import re
from html.parser import HTMLParser

import pytest

from rlcas_utils import desk
from rlcas_utils.desk.ticket import make_ticket
from rlcas_utils.desk.world import default_world
from rlcas_utils.viewer import desk as view
from rlcas_utils.viewer import episodes
from rlcas_utils.viewer.page import page, stylesheet

INJECTION = "<script>alert(1)</script><img src=x onerror=alert(1)>\" onload='x"


class Tags(HTMLParser):
    """Tags with attributes; fails on a tag that is closed out of order."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.open, self.text = [], [], ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def first():
    return desk.load_tickets("benchmark")[0]


@pytest.fixture(scope="module")
def rows():
    """Two agents on the first three benchmark tickets."""
    tickets = desk.load_tickets("benchmark")[:3]
    other_seed = desk.evaluate(desk.KeywordAgent(), tickets, seed=1)
    return {
        "rules": other_seed + desk.evaluate(desk.KeywordAgent(), tickets),
        "oracle": desk.evaluate(desk.OracleAgent(), tickets),
    }


def test_a_track_tells_actions_answers_running_return_and_ending(first):
    episode = desk.play(desk.OracleAgent(), first)
    shown = Tags(view.track(view.Track("oracle", episode, ["because", "done"])))
    assert "1. invoke_order_service (0)" in shown.text
    assert "because" in shown.text
    assert episode.history[0].text in shown.text
    assert [f"return {r}" in shown.text for r in ("+3.65", "+18.55")] == [True, True]
    assert "Right: the right ending" in shown.text


def test_a_wrong_ending_names_the_right_way(first):
    episode = desk.Episode(first)
    episode.step(11)
    shown = Tags(view.track(view.Track("random", episode)))
    assert "Wrong ending. The right way: invoke_order_service → resolve_query." in shown.text


def test_the_bar_has_a_piece_per_signal_as_wide_as_its_value():
    """+10 of a span of 30 is a third of the bar, right of zero at 40 %; -6 is a fifth, left of it."""
    signals = dict.fromkeys((s.name for s in desk.SIGNALS), 0.0)
    made = view.signal_bar(signals | {"resolution": 10.0, "wrong_ending": -6.0})
    pieces = re.findall(r'class="(plus|minus)" style="left:([\d.]+)%;width:([\d.]+)%"', made)
    assert pieces == [("plus", "40.00", "33.33"), ("minus", "20.00", "20.00")]
    assert "resolution +10.00" in made


def test_no_step_can_leave_the_bar():
    """All that can fire in one step together: the ending's four positive ones, and the worst ending."""
    values = {s.name: s.value for s in desk.SIGNALS}
    best = sum(values[n] for n in ("resolution", "right_route", "efficiency"))
    worst = sum(values[n] for n in ("step_cost", "wrong_ending", "unneeded_escalation"))
    timeout = 6 * values["step_cost"] + values["redundant_call"] + values["timeout"]
    assert best <= view.HIGHEST
    assert min(worst, timeout) >= view.LOWEST


def test_foreign_text_stays_text():
    ticket = make_ticket(default_world(), "own", "order_status", INJECTION + " order 140954")
    track = view.Track("sft", desk.Episode(ticket), [INJECTION], note=INJECTION, title=INJECTION)
    track.episode.step(0)
    shown = Tags(view.query(ticket.query) + view.tracks([track]))
    assert {tag for tag, _ in shown.tags} <= {"div", "article", "h4", "span", "ol", "li", "p"}
    assert not any(name.startswith("on") for _, attributes in shown.tags for name in attributes)
    assert shown.text.count("<script>alert(1)</script>") == 4


def test_a_page_needs_nothing_else_and_follows_the_readers_colours():
    parsed = Tags(page("A <title>", "<p>x</p>"))
    assert not {tag for tag, _ in parsed.tags} & {"script", "link", "img"}
    assert "prefers-color-scheme: dark" in parsed.text
    assert ".dark .rv {" in stylesheet(".dark .rv")
    assert "prefers-color-scheme" not in stylesheet(".dark .rv")


def test_a_row_is_played_again_to_the_recorded_return(rows):
    tickets = {t.ticket_id: t for t in desk.load_tickets("benchmark")}
    for row in (*rows["rules"], *rows["oracle"]):
        episode = episodes.replay(row, tickets[row["ticket_id"]])
        assert episode.total_reward == pytest.approx(row["return"])


def test_a_row_with_unusable_outputs_is_played_again(first):
    episode = desk.Episode(first)
    episode.invalid("no_json")
    for action in (0, 7):
        episode.step(action)
    row = desk.episode_row(episode, "sft")
    assert row["actions"] == [None, 0, 7]
    assert episodes.replay(row, first).total_reward == pytest.approx(row["return"])


def test_a_row_that_comes_out_otherwise_is_not_shown(rows, first):
    row = rows["oracle"][0] | {"return": 3.0}
    with pytest.raises(episodes.CannotReplay, match=r"has return 3\.0 on record and 18\.55"):
        episodes.replay(row, first)
    (made,) = episodes.desk_pages({"oracle": [row]}).values()
    assert "on record" in made
    assert "<article" not in made


def test_desk_pages_show_each_ticket_with_all_agents(rows):
    (name, made), *others = episodes.desk_pages(rows).items()
    assert (name, others) == ("desk_order", [])
    parsed = Tags(made)
    assert [tag for tag, _ in parsed.tags].count("article") == 6
    assert [tag for tag, _ in parsed.tags].count("details") == 3


def test_nothing_is_written_for_a_run_without_records(tmp_path):
    assert episodes.write_episodes(tmp_path) == []
    assert not (tmp_path / "episodes").exists()


def test_the_experts_call_is_played_again_with_checks():
    from rlcas_utils.telecom import agents, evaluation, tau2

    (task,) = [t for t in tau2.tasks("test") if "overdue_bill_suspension|unseat_sim" in t.id][:1]
    rows = evaluation.evaluate(
        "expert", [task], lambda played: evaluation.play_agent(agents.expert, played, 0), num_trials=1
    )
    (made,) = episodes.telecom_pages({"expert": rows, "grpo": [rows[0] | {"reward": 0.0}]}, seed=0).values()
    text = Tags(made).text
    assert "Reward 1" in text
    assert "✓ met no overdue bill" in text
    assert "scripted expert 1/1; SFT + GRPO 0/1" in text
    assert "Customer uses" in text
    (odd,) = episodes.telecom_pages({"expert": [rows[0] | {"turns": 99}]}, seed=0).values()
    assert "does not come out as recorded" in odd
