"""Scores only what moves the policy: no padding that other episodes need, no episodes of dead groups."""

from typing import Any

import torch


class LeanScoring:
    """Put before TRL's trainer among the bases of a class.

    Attributes:
        idle: For each episode of the batch that was played last, whether its group is dead.
    """

    idle: list[bool] = []  # noqa: RUF012 - replaced as a whole, never changed in place

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """Takes rounding errors off the advantages of dead groups."""
        self.use_vllm = False  # set, TRL would load weights into a vLLM of its own before it generates
        batch = super()._generate_and_score_completions(inputs)
        batch["advantages"][torch.tensor(self.idle, device=batch["advantages"].device)] = 0.0
        return batch

    def _compute_loss(self, model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Leaves a micro-batch out in which every advantage is 0; alone, its passes are saved too."""
        idle = model.training and not inputs["advantages"].any()
        if idle and self.accelerator.num_processes == 1:
            return sum(p.sum() * 0.0 for p in model.parameters() if p.requires_grad)
        loss = super()._compute_loss(model, inputs)
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
        """Scores each micro-batch at its own width, and puts zeros back where the padding was."""
        count = len(input_ids)
        size = batch_size or count
        # The reference scores come before the rewards, but the episodes are known to be idle already.
        known = size == 1 and len(self.idle) == count and self.accelerator.num_processes == 1
        idle = self.idle if known else [False] * count
        zeros = torch.zeros((1, logits_to_keep), device=input_ids.device)
        pieces = [
            (zeros, zeros, None)
            if idle[start]
            else self._score(
                model,
                input_ids[start : start + size],
                attention_mask[start : start + size],
                logits_to_keep,
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
        self, model: Any, ids: torch.Tensor, mask: torch.Tensor, logits_to_keep: int, kwargs: dict[str, Any]
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        used = mask.any(dim=0).nonzero().flatten()
        first, end = int(used[0]), int(used[-1]) + 1
        cut = mask.shape[1] - end
        logps, entropies, aux = super()._get_per_token_logps_and_entropies(
            model, ids[:, first:end], mask[:, first:end], logits_to_keep - cut, **kwargs
        )
        pad = torch.nn.functional.pad
        return pad(logps, (0, cut)), None if entropies is None else pad(entropies, (0, cut)), aux
