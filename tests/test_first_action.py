"""The supervised yardstick: it learns first actions from messages, and the rules finish the ticket."""

import dataclasses

import numpy as np
import pytest

from rlcas_utils import desk
from rlcas_utils.sac.first_action import FirstActionAgent, first_action_agent

TICKETS = desk.load_tickets("benchmark")


def one_hot_of_the_first_action(texts):
    """Message vectors that give the answer away."""
    first = {ticket.query: ticket.optimal_actions[0] for ticket in TICKETS}
    return np.eye(13, dtype=np.float32)[[first[text] for text in texts]]


def test_what_the_vectors_say_is_learned_and_named_by_action_id():
    agent = first_action_agent(one_hot_of_the_first_action, TICKETS[:60], TICKETS)
    seen = {ticket.optimal_actions[0] for ticket in TICKETS[:60]}
    assert len(seen) > 2
    for ticket in TICKETS:
        if ticket.optimal_actions[0] in seen:
            assert agent.act(desk.Episode(ticket)) == ticket.optimal_actions[0]


def test_labels_of_the_tickets_to_be_played_are_not_read():
    known, played = TICKETS[:60], TICKETS[60:]
    mislabelled = [dataclasses.replace(ticket, optimal_actions=(12, 7)) for ticket in played]
    agents = [first_action_agent(one_hot_of_the_first_action, known, own) for own in (played, mislabelled)]
    assert agents[0].first_actions == agents[1].first_actions


def test_the_rules_finish_the_ticket():
    rules, ticket = desk.KeywordAgent(), TICKETS[0]
    agent, episode = FirstActionAgent({ticket.query: 5}), desk.Episode(ticket)
    assert agent.act(episode) == 5
    episode.step(5)
    assert agent.act(episode) == rules.act(episode)
    row = desk.evaluate(agent, [ticket])[0]
    assert (row["agent"], row["actions"][0]) == ("classifier", 5)


def test_a_message_that_was_never_classified_is_named():
    with pytest.raises(KeyError, match="Give `first_action_agent` every ticket"):
        FirstActionAgent({}).act(desk.Episode(TICKETS[0]))
