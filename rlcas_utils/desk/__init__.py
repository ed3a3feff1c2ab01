"""The customer-service desk: tickets, services, rewards, episodes, and the environment `RLCAS-v0`."""

import gymnasium

from rlcas_utils.desk import agents, features
from rlcas_utils.desk.actions import ACTIONS, CATEGORIES, CONSULT, ENDINGS, SERVICES
from rlcas_utils.desk.agents import KeywordAgent, OracleAgent, RandomAgent
from rlcas_utils.desk.episode import Episode, StepResult
from rlcas_utils.desk.evaluation import episode_row, evaluate, play
from rlcas_utils.desk.rewards import SIGNALS, Signal
from rlcas_utils.desk.ticket import Ticket
from rlcas_utils.desk.tickets import load_tickets
from rlcas_utils.desk.world import World, default_world

if "RLCAS-v0" not in gymnasium.registry:
    gymnasium.register("RLCAS-v0", entry_point="rlcas_utils.desk.env:DeskEnv")

__all__ = [
    "ACTIONS",
    "CATEGORIES",
    "CONSULT",
    "ENDINGS",
    "SERVICES",
    "SIGNALS",
    "Episode",
    "KeywordAgent",
    "OracleAgent",
    "RandomAgent",
    "Signal",
    "StepResult",
    "Ticket",
    "World",
    "agents",
    "default_world",
    "episode_row",
    "evaluate",
    "features",
    "load_tickets",
    "play",
]
