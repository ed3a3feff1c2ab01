"""TRL's SFT trainer with a clock and a shared opening: time per log row, progress, the prompt read once."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from transformers import PrinterCallback
from trl import SFTTrainer

from rlcas_utils.checkpoints import already_trained
from rlcas_utils.language.cpu import uncast_adapter_inputs
from rlcas_utils.language.sft_log import tokens_seen
from rlcas_utils.language.shared_prompt import read_shared_prompt
from rlcas_utils.statistics import mean_interval

MAX_LINES = 15  # progress lines per run, beside two for each evaluation


class ReportingSFTTrainer(SFTTrainer):
    """Adds ``elapsed_s`` to every log row, reports at a bounded rate, and lets the model play in between."""

    def __init__(
        self,
        *args: Any,
        progress: Callable[[str], None],
        play: Callable[[], Sequence[float]] | None = None,
        **kwargs: Any,
    ) -> None:
        """Take the parent's arguments, where to report to, and what plays episodes for their returns."""
        super().__init__(*args, **kwargs)
        self._play = play
        self.remove_callback(PrinterCallback)  # it prints every log row
        self._progress = progress
        self._mark = time.monotonic()
        self._lines = 0

    def train(self, *args: Any, **kwargs: Any) -> Any:
        """Train, with the clock started anew; from a checkpoint of the last step nothing is left to do."""
        self._mark = time.monotonic()
        if already_trained(self, kwargs.get("resume_from_checkpoint")):
            return None
        return super().train(*args, **kwargs)

    def compute_loss(self, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Loss of a batch whose common opening is read once.

        Whole rows stay where a cache of keys has no place: in evaluation, where activations are recomputed,
        and where several processes reduce gradients forward by forward.
        """
        recomputed = self.args.activation_checkpointing or self.args.gradient_checkpointing
        with uncast_adapter_inputs(model, autocast=self.args.bf16):
            if model.training and not recomputed and self.accelerator.num_processes == 1:
                inputs = read_shared_prompt(model, inputs)
            return super().compute_loss(model, inputs, *args, **kwargs)

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Measure the loss, then let the model play; the mean return gets a log row of its own."""
        metrics = super().evaluate(*args, **kwargs)
        if self._play is not None:
            earned = mean_interval(self._play())
            low, high = earned.ci95
            self.log({"played_mean": earned.value, "played_low": low, "played_high": high})
        return metrics

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """Log one row with the seconds since the row before."""
        now = time.monotonic()
        logs = {**logs, "elapsed_s": round(now - self._mark, 3)}
        self._mark = now
        super().log(logs, *args, **kwargs)
        self._report(logs)

    def _report(self, logs: dict[str, float]) -> None:
        step, total = self.state.global_step, max(1, self.state.max_steps)
        if "eval_loss" in logs:
            self._progress(f"step {step}/{total}  validation loss {logs['eval_loss']:.3f}")
            return
        if "played_mean" in logs:
            self._progress(f"step {step}/{total}  return on validation tickets {logs['played_mean']:.2f}")
            return
        due = int(step / total * MAX_LINES)
        if "loss" not in logs or due <= self._lines:
            return
        self._lines = due
        rows = [row for row in self.state.log_history if "loss" in row]
        seconds = sum(row["elapsed_s"] for row in rows)
        rate = tokens_seen(rows) / max(seconds, 1e-9)
        left = seconds / step * (total - step)
        self._progress(
            f"step {step}/{total}  loss {logs['loss']:.3f}  {rate:.0f} tokens/s  {left:.0f} s left"
        )
