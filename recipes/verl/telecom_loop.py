"""verl's agent loop around the telecom session; written for the interface of verl 0.8 (January 2026)."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput, register

from recipes.verl.episode import play
from rlcas_utils.telecom import arms, customers, tau2
from rlcas_utils.telecom.conversation import TelecomConversation


@register("telecom")
class TelecomAgentLoop(AgentLoopBase):
    """One instance per episode; the values come from `agent.yaml`."""

    def __init__(self, *args: Any, settings: dict[str, Any], **kwargs: Any) -> None:
        """Take verl's arguments and the recipe's settings."""
        super().__init__(*args, **kwargs)
        self._settings = settings
        self._max_tokens = self.config.actor_rollout_ref.rollout.response_length

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput:
        """Play the task of one data row.

        Args:
            sampling_params: Temperature and the like, from the configuration.
            row: Fields of the data set; `extra_info` names the task and the customer's seed.
        """
        conversation = await asyncio.to_thread(self._open, row["extra_info"])
        session = uuid4().hex  # keeps an episode on one server, whose cache holds its beginning

        async def generate(ids: list[int], most: int) -> tuple[list[int], list[float]]:
            turn = await self.server_manager.generate(
                request_id=session, prompt_ids=ids, sampling_params={**sampling_params, "max_tokens": most}
            )
            new = list(turn.token_ids)
            return new, list(turn.log_probs) if turn.log_probs else [0.0] * len(new)

        played = await play(
            generate, self.tokenizer, conversation, self._settings["max_turn_tokens"], self._max_tokens
        )
        reward = arms.training_reward(conversation.score, "robust", self._settings["partial_weight"])
        failed = reward is None  # the customer did: nothing of the episode is trained on
        return AgentLoopOutput(
            prompt_ids=played.prompt_ids,
            response_ids=played.response_ids,
            response_mask=[0] * len(played.mask) if failed else played.mask,
            response_logprobs=played.logprobs,
            reward_score=0.0 if failed else reward,
            num_turns=2 * played.num_turns,
            metrics={},
            extra_fields={"tau2_reward": conversation.score.reward},
        )

    def _open(self, info: dict[str, Any]) -> TelecomConversation:
        values = self._settings
        make_customer = customers.customer_factory(
            values["customer"],
            values["customer_url"],
            max_usd=values["customer_max_usd"],
            path=Path(values["spending_folder"]) / f"customer_{os.getpid()}.json",
        )
        task = tau2.task_by_id(info["task_id"])
        customer = make_customer(task, info["seed"])
        return TelecomConversation(task, customer, values["policy_arm"], values["max_turns"])
