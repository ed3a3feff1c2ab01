"""Scores only what moves the policy: no padding of other episodes, no dead groups, no words of others.

The loss, the KL term and every logged mean leave out the environment's tokens. TRL runs the head on them all
the same: a product with the whole vocabulary, a softmax and an entropy for numbers that are multiplied by 0.
Here they get no label, so that the head passes them by; the layers read them as before.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import pad


class LeanScoring:
    """Put before TRL's trainer among the bases of a class.

    Attributes:
        idle: For each episode of the batch that was played last, whether its group is dead.
        spoken: 1 on the policy's tokens of the batch that is scored next, shape (B, T); None scores all.
    """

    idle: list[bool] = []  # noqa: RUF012 - replaced as a whole, never changed in place
    spoken: torch.Tensor | None = None

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """Takes rounding errors off the advantages of dead groups."""
        self.use_vllm = False  # set, TRL would load weights into a vLLM of its own before it generates
        batch = super()._generate_and_score_completions(inputs)
        batch["advantages"][torch.tensor(self.idle, device=batch["advantages"].device)] = 0.0
        self.spoken = None
        return batch

    def _compute_loss(self, model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Leaves a micro-batch out in which every advantage is 0; alone, its passes are saved too."""
        idle = model.training and not inputs["advantages"].any()
        if idle and self.accelerator.num_processes == 1:
            return sum(p.sum() * 0.0 for p in model.parameters() if p.requires_grad)
        self.spoken = inputs["completion_mask"] * inputs["tool_mask"]
        loss = super()._compute_loss(model, inputs)
        self.spoken = None
        return loss * 0.0 if idle else loss  # other processes wait for this one in each pass

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        """Scores each micro-batch (on a CPU, each row) at its own width; zeros where the padding was."""
        count = len(input_ids)
        size = batch_size or count
        spoken = torch.ones_like(input_ids[:, -logits_to_keep:])
        if self.spoken is not None:
            spoken = pad(self.spoken, (0, logits_to_keep - self.spoken.shape[1])).to(input_ids.device)
        # The reference scores come before the rewards, but the episodes are known to be idle already.
        known = size == 1 and len(self.idle) == count and self.accelerator.num_processes == 1
        idle = self.idle if known else [False] * count
        if self.accelerator.num_processes == 1:  # a wrapped model should see one forward pass per backward
            size = _rows_at_once(size, input_ids.device)
        zeros = torch.zeros((1, logits_to_keep), device=input_ids.device)
        pieces = [
            (zeros, zeros, None)
            if idle[start]
            else self._score(
                model,
                input_ids[start : start + size],
                attention_mask[start : start + size],
                spoken[start : start + size],
                kwargs,
            )
            for start in range(0, count, size)
        ]
        logps, entropies, aux = zip(*pieces, strict=True)
        scored = [value for value in aux if value is not None]
        has_entropies = all(value is not None for value in entropies)
        return (
            torch.cat(logps),
            torch.cat(entropies) if has_entropies else None,
            torch.stack(scored).mean() if scored else None,
        )

    def _score(
        self,
        model: Any,
        ids: torch.Tensor,
        mask: torch.Tensor,
        spoken_BT: torch.Tensor,
        kwargs: dict[str, Any],
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        used = mask.any(dim=0).nonzero().flatten()
        first, end = int(used[0]), int(used[-1]) + 1
        cut = mask.shape[1] - end
        width = spoken_BT.shape[1] - cut
        logps, entropies, aux = super()._get_per_token_logps_and_entropies(
            _labelled(model, spoken_BT[:, :width]), ids[:, first:end], mask[:, first:end], width, **kwargs
        )
        return pad(logps, (0, cut)), None if entropies is None else pad(entropies, (0, cut)), aux


def _rows_at_once(size: int, device: torch.device) -> int:
    """One row on a CPU: side by side, rows need padding and a mask, and attention its slower path."""
    return 1 if device.type == "cpu" else size


def _labelled(model: Any, spoken_BT: torch.Tensor) -> Callable[..., Any]:
    """The model, called with labels on the policy's tokens only; those come last in each row."""

    def forward(*, labels: torch.Tensor, **inputs: Any) -> Any:
        width = spoken_BT.shape[1]
        labels[:, -width:] = labels[:, -width:].masked_fill(spoken_BT == 0, -100)
        return model(labels=labels, **inputs)

    return forward
