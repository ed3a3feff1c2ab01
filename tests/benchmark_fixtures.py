"""Episode rows made by hand for the tests; never shipped as results."""


def desk_row(agent="sac", ticket="B001", **changes):
    row = {
        "agent": agent,
        "ticket_id": ticket,
        "category": "order",
        "seed": 0,
        "return": 20.0,
        "resolved": True,
        "steps": 3,
        "parse_failures": 0,
        "outcome": "resolved",
        "actions": [0, 4, 7],
        "signals": {"resolution": 20.0},
    }
    return row | changes


def telecom_row(task="T1", trial=0, reward=1.0, **changes):
    row = {
        "agent": "grpo",
        "task_id": task,
        "trial": trial,
        "seed": trial,
        "reward": reward,
        "group": "fixable",
        "num_faults": 2,
        "turns": 12,
        "end": "agent_stop",
        "transferred": False,
        "first_transfer_turn": None,
        "tool_errors": {},
        "partial": 0.5,
        "customer": "scripted",
        "policy_arm": "compact",
    }
    return row | changes
