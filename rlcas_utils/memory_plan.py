"""What a stage needs in GPU memory, added up from the model's sizes and the notebook's values.

Seven things fill a GPU: weights, the adapter with its gradients, the optimizer, activations, the key/value
cache of running episodes, logits, and what CUDA itself takes. Each moment of a stage (training, playing,
merging) holds some of them. `--check` prints the sums, refuses what would not fit and says what to change.

Activations are compared with PyTorch's own count on fake tensors in a test; no GPU stands behind the sums.

The optimizer is plain AdamW: two float32 moments of each adapter weight, 0.22 GiB at three billion weights.
On a GPU the trainers also take `optim="paged_adamw_8bit"`, which needs a quarter of that and can move it to
main memory; the plan does not count on it, and no profile asks for it, because the adapter is so small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlcas_utils.architectures import CONFIGS, Sizes, sizes

GIB = 2**30
LIMIT_GIB = 22.0  # of a 24 GB card, of which about 22.4 GiB can be used
RUNTIME_GIB = 1.0  # CUDA context, libraries, and gaps between tensors
NF4_BYTES = 4.127 / 8  # a weight with its share of the doubly quantised scales
HALF, FULL = 2, 4  # bytes of a number
ADAPTER_BYTES = 2 * FULL  # float32 weight and gradient
OPTIMIZER_BYTES = 2 * FULL  # the two moments of AdamW
WORK = 1.8  # peak of a layer's backward pass over what its forward pass kept
READ_TOKENS = 4096  # of a reading pass of the rollout engine
HEAD_TILE = (4096, 32768)  # tokens x vocabulary entries that TRL's fused head holds at once
LOGIT_COPIES = 3  # of full float32 logits in a loss: logits, log-softmax, gradient
QUANTIZED = "Set QUANTIZE to true."
PARTS = ("weights", "adapter", "optimizer", "activations", "KV cache", "logits", "CUDA")
DESK_PROMPT, TELECOM_PROMPT = 300, 2200  # tokens of the opening prompt, rounded up


@dataclass(frozen=True)
class Moment:
    """One moment of a stage and what it holds, in GiB.

    Attributes:
        name: Such as "05 training".
        weights: The frozen model, and copies of it.
        adapter: LoRA factors, their gradients, and the frozen reference copy.
        optimizer: Its two moments of each adapter weight.
        activations: What the backward pass needs, or the widest forward pass.
        cache: Keys and values of the episodes in flight.
        logits: What the head holds at once.
        knobs: What makes a part smaller, by part.
    """

    name: str
    weights: float
    adapter: float
    optimizer: float
    activations: float
    cache: float
    logits: float
    knobs: Mapping[str, str]

    @property
    def parts(self) -> tuple[float, ...]:
        """GiB in the order of `PARTS`: what the moment holds, and what CUDA itself takes."""
        held = (self.weights, self.adapter, self.optimizer, self.activations, self.cache, self.logits)
        return (*held, RUNTIME_GIB)

    @property
    def total(self) -> float:
        """GiB with what CUDA itself takes."""
        return sum(self.parts)

    @property
    def remedy(self) -> str:
        """The value to change: that of the largest part that has one."""
        return self.knobs[max(self.knobs, key=lambda part: getattr(self, part))]


def layer_bytes_per_token(model: Sizes) -> int:
    """Return what one layer keeps for its backward pass, per token, with adapters on all linear layers.

    Norms keep a float32 copy, each adapter a copy of its input, attention its operands, the MLP its two
    branches and their product.
    """
    norms = 2 * FULL * model.hidden + FULL * (model.queries + model.keys) * model.head_norms
    adapter_inputs = HALF * (5 * model.hidden + model.queries + model.inner)
    attention = HALF * (2 * model.queries + 2 * model.keys) + FULL * model.heads
    mlp = HALF * 3 * model.inner
    return norms + adapter_inputs + attention + mlp


def training_activations(model: Sizes, tokens: int, checkpointing: bool) -> float:
    """Return the peak of activations in a training pass, in GiB.

    Args:
        model: Its sizes.
        tokens: Tokens of one pass, padding included.
        checkpointing: Only the input of each layer is kept, and one layer at a time is computed again.
    """
    one_layer = layer_bytes_per_token(model) * tokens
    if checkpointing:
        kept = model.layers * tokens * model.hidden * HALF
        return (kept + WORK * one_layer) / GIB
    return (model.layers - 1 + WORK) * one_layer / GIB


def weights_gib(model: Sizes, quantize: bool) -> float:
    """Return the frozen weights in GiB: NF4 or 16 bits for the linear layers, 16 bits for the rest."""
    return (model.num_linear * (NF4_BYTES if quantize else HALF) + model.num_embedding * HALF) / GIB


def cache_gib(model: Sizes, episodes: int, tokens: int) -> float:
    """Return keys and values of episodes in flight, in GiB."""
    return episodes * tokens * 2 * model.keys * model.layers * HALF / GIB


def head_gib(model: Sizes, tokens: int) -> float:
    """Return what the trainers' fused head holds at once, in GiB: one tile of logits, and two gradients."""
    rows, columns = min(tokens, HEAD_TILE[0]), min(model.vocabulary, HEAD_TILE[1])
    return (rows * columns * HALF * 2 + tokens * model.hidden * FULL) / GIB


@dataclass(frozen=True)
class _Stage:
    """One notebook's values, read with the names that its parameters cell gives them."""

    number: str
    model: Sizes
    values: Mapping[str, Any]
    prompt: int

    @property
    def weights(self) -> float:
        return weights_gib(self.model, self.values["QUANTIZE"])

    def adapter(self, reference: bool) -> tuple[float, float]:
        """Adapter and optimizer."""
        count = self.model.num_adapter(self.values.get("LORA_R", 16)) / GIB
        return count * (ADAPTER_BYTES + (FULL if reference else 0)), count * OPTIMIZER_BYTES

    def playing(self, batch_name: str, reference: bool) -> Moment:
        """Episodes side by side: their cache, and keys and values repeated for the heads of one layer."""
        batch, length = self.values[batch_name], self.prompt + self.values["MAX_EPISODE_TOKENS"]
        lower = f"Lower {batch_name} or MAX_EPISODE_TOKENS."
        repeated = 2 * batch * length * self.model.queries * HALF
        reading = READ_TOKENS * layer_bytes_per_token(self.model)
        return Moment(
            f"{self.number} playing",
            self.weights,
            *self.adapter(reference),
            (repeated + reading) / GIB,
            cache_gib(self.model, batch, length),
            2 * FULL * batch * self.model.vocabulary / GIB,
            {"weights": QUANTIZED, "cache": lower, "activations": lower},
        )

    def training(self, rows_name: str, length: int, length_name: str, reference: bool) -> Moment:
        tokens = self.values[rows_name] * length
        checkpointing = self.values.get("CHECKPOINTING", True)
        knob = f"Lower {rows_name if self.values[rows_name] > 1 else length_name}."
        if not checkpointing:
            knob = "Set CHECKPOINTING to true."
        return Moment(
            f"{self.number} training",
            self.weights,
            *self.adapter(reference),
            training_activations(self.model, tokens, checkpointing),
            0.0,
            head_gib(self.model, tokens),
            {"weights": QUANTIZED, "activations": knob, "logits": knob},
        )


def _sft(stage: _Stage) -> Iterator[Moment]:
    yield stage.training("BATCH_SIZE", stage.values["MAX_TOKENS"], "MAX_TOKENS", reference=False)
    yield stage.playing("MAX_BATCH", reference=False)
    whole = (stage.model.num_linear + stage.model.num_embedding) * FULL / GIB
    knobs = {"weights": "Choose a smaller MODEL."}
    yield Moment("04 merging", stage.weights + whole, *stage.adapter(False), 0.2, 0.0, 0.1, knobs)


def _grpo(stage: _Stage) -> Iterator[Moment]:
    length = stage.prompt + stage.values["MAX_EPISODE_TOKENS"]
    reference = stage.values["BETA"] > 0
    yield stage.training("EPISODES_PER_PASS", length, "MAX_EPISODE_TOKENS", reference)
    yield stage.playing("ROLLOUT_BATCH", reference)


def _telecom(stage: _Stage) -> Iterator[Moment]:
    length = stage.prompt + stage.values["MAX_EPISODE_TOKENS"]
    reference = stage.values["GRPO_KL"] > 0
    if stage.values["SFT_STEPS"]:
        logits = LOGIT_COPIES * length * stage.model.vocabulary * FULL / GIB
        activations = training_activations(stage.model, length, checkpointing=False)
        knobs = dict.fromkeys(("logits", "activations"), "Set SFT_STEPS to 0: SFT keeps whole logits.")
        yield Moment("06 SFT", stage.weights, *stage.adapter(False), activations, 0.0, logits, knobs)
    yield stage.training("GRPO_BATCH", length, "MAX_EPISODE_TOKENS", reference)
    yield stage.playing("MAX_BATCH", reference)


PLANNED = {
    "04_qlora_sft": (_sft, DESK_PROMPT),
    "05_grpo": (_grpo, DESK_PROMPT),
    "06_tau2_telecom_grpo": (_telecom, TELECOM_PROMPT),
}


def plan_memory(stages: Sequence[Any]) -> list[Moment]:
    """Return the moments of all planned notebooks whose model's sizes are known.

    Args:
        stages: From `plan.make_plan`; those with a small model or an unknown one are left out.
    """
    return [moment for stage in stages for moment in moments_of(stage.stem, stage.values)]


def moments_of(stem: str, values: Mapping[str, Any]) -> list[Moment]:
    """Return the moments of one notebook; none without a plan for it, or for a model of unknown sizes.

    Args:
        stem: Such as "04_qlora_sft".
        values: Its parameters.
    """
    config = CONFIGS.get(values.get("MODEL", ""))
    if stem not in PLANNED or not config:
        return []
    describe, prompt = PLANNED[stem]
    return list(describe(_Stage(stem[:2], sizes(config), values, prompt)))
