"""Shows where the time of a GRPO step goes, and times each saving with and without it on the same step.

Notebook 05 at the values of a profile, `cpu` unless told otherwise, with fewer tickets per step. First come
steps under a clock that charges every moment to one part. Then the update of one and the same batch is
repeated, the learning rate being 0, with one saving undone in turn (A B C A B C); loss and gradient norm of
all of them are compared. On a busy machine look at the ratios, which are those of processor seconds on a CPU.

Savings, each undone by one line here:

- `head`: the language-model head scores the policy's tokens only, not the environment's, whose numbers are
  multiplied by 0 (`grpo/scoring.py`).
- `compact`: on a CPU, TRL's head skips prompt and padding as it does on a GPU (`language/cpu.py`). Until now
  notebook 06, which trains without `train_or_resume`, went without.
- `expanded`: on a CPU, 4-bit weights are expanded once per training instead of three times per episode
  (reference, forward, backward; `rollouts/expanded.py`).

Looked at and left as it is:

- Old log-probabilities: TRL does not compute them with one update per batch. Dead groups, finished episodes
  and the padding of other micro-batches were left out before; the system prompt is read once per rollout.
- Decoding: with 6 of SmolLM2's layers and 8 episodes a token costs 42 ms, 70 % of it in matrix products that
  wait for the weights; 7 ms go to the adapter's branch, 2 ms to softmax and draw.
- KL reference: one pass per episode, the adapter's frozen copy on the same base; nothing is done twice.
- The prompt that a group shares, packed in front of its episodes with a mask: at SmolLM2's width attention
  over the packed row costs 65 ms per layer instead of 42 (forward and backward, 118 tokens of prompt, four
  episodes of 136), and eats most of what the linear layers save. A wider model would gain more; no GPU was
  at hand.
- Episodes side by side in one update on a CPU (notebook 06; not 05, which takes one at a time) are not in
  this script's comparison: padded and masked, four of 700 to 1400 tokens cost the layers of a small model 1.9
  processor seconds, alone 0.9, in three alternating rounds. So a CPU takes each row alone now.
- 4-bit weights on a GPU are expanded at every call. Keeping them expanded costs the memory that 4 bits were
  chosen for: 6 GB for 3 billion weights.

    python benchmarks/grpo_step_profile.py --adapter runs/cpu/04_qlora_sft/adapter
"""

import argparse
import contextlib
import datetime
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import trl.trainer.utils as trl_utils
from transformers import TrainerCallback
from trl import GRPOConfig

from rlcas_utils import desk, grpo, language, machine, records
from rlcas_utils.config import load_profile, project_root
from rlcas_utils.desk.conversation import DeskConversation
from rlcas_utils.grpo import scoring
from rlcas_utils.parameters import parse_text, read_parameters
from rlcas_utils.rollouts import Sampling, engine

ROOT = project_root()
STEM = "05_grpo"
OPERATORS = "operators"
RECORD = ROOT / "results" / "benchmarks" / "grpo_step_profile.json"
PARTS = {
    "prefill": "playing: reading prompts and replies",
    "decode": "playing: decoding, one token per episode",
    "draw": "playing: softmax and draw",
    "text": "playing: chat template, tokenizer",
    "desk": "playing: answer parsed, environment's step",
    "play": "playing: the rest of the engine (host)",
    "reference": "reference: layers",
    "reference head": "reference: head, log-softmax",
    "forward": "update: forward, layers",
    "head": "update: forward, head, log-softmax, entropy",
    "recompute": "update: activations computed again",
    "backward": "update: backward, layers",
    "head backward": "update: backward, head",
    "optimizer": "update: gradient norm, optimizer",
    "host": "everything else: padding, metrics, loops (host)",
}


class Clock:
    """Charges every moment to the innermost part that is running, so that the parts add up to the whole."""

    def __init__(self, cuda: bool) -> None:
        """Take whether kernels run on their own and must be waited for."""
        self._cuda, self._stack, self._since = cuda, ["host"], 0.0
        self.seconds: dict[str, float] = defaultdict(float)
        self.read = time.perf_counter if cuda else time.process_time

    def restart(self) -> None:
        """Forget what was measured."""
        self.seconds.clear()
        self._since = self.read()

    def _charge(self) -> None:
        if self._cuda:
            torch.cuda.synchronize()
        now = self.read()
        self.seconds[self._stack[-1]] += now - self._since
        self._since = now

    @property
    def part(self) -> str:
        """The part that is running."""
        return self._stack[-1]

    def enter(self, part: str) -> None:
        """Start a part."""
        self._charge()
        self._stack.append(part)

    def leave(self) -> None:
        """Go back to the part around it."""
        self._charge()
        self._stack.pop()

    def timed(self, function: Callable, part: str | Callable[..., str]) -> Callable:
        """Return the function, charged to a part, or to what a function of its arguments says."""

        def run(*args: Any, **kwargs: Any) -> Any:
            self.enter(part if isinstance(part, str) else part(*args, **kwargs))
            try:
                return function(*args, **kwargs)
            finally:
                self.leave()

        return run


@contextlib.contextmanager
def patched(places: list[tuple[Any, str, Any]]) -> Iterator[None]:
    """Sets attributes and puts the old ones back."""
    old = [(owner, name, vars(owner).get(name)) for owner, name, _ in places]
    for owner, name, value in places:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in old:
            if value is None:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


@contextlib.contextmanager
def clocked(trainer: grpo.EpisodicGRPOTrainer, clock: Clock) -> Iterator[None]:
    """Lets the clock see the parts of a step."""
    head = trl_utils._ChunkedLogProbFunction
    scored = lambda *_, **__: "forward" if torch.is_grad_enabled() else "reference"
    reads = lambda _, slots, pending: "prefill" if max(map(len, pending)) > 1 else "decode"
    # Within autograd gradients are off, so the part around the head tells which pass this is.
    which_head = lambda *_: "reference head" if clock.part == "reference" else "head"
    tokenizer = trainer.player.tokenizer
    timed = clock.timed
    places = [
        (trainer, "play", timed(trainer.play, "play")),
        (engine._Engine, "_forward", timed(engine._Engine._forward, reads)),
        (engine, "draw_tokens", timed(engine.draw_tokens, "draw")),
        (engine, "render_prompt", timed(engine.render_prompt, "text")),
        (engine, "turn_suffix", timed(engine.turn_suffix, "text")),
        (tokenizer, "decode", timed(tokenizer.decode, "text")),
        (DeskConversation, "reply", timed(DeskConversation.reply, "desk")),
        (DeskConversation, "__init__", timed(DeskConversation.__init__, "desk")),
        (scoring.LeanScoring, "_score", timed(scoring.LeanScoring._score, scored)),
        (head, "forward", staticmethod(timed(head.forward, which_head))),
        (head, "backward", staticmethod(timed(head.backward, "head backward"))),
        (trainer.accelerator, "backward", timed(trainer.accelerator.backward, "backward")),
        (trainer.accelerator, "clip_grad_norm_", timed(trainer.accelerator.clip_grad_norm_, "optimizer")),
        (torch.optim.AdamW, "step", timed(torch.optim.AdamW.step, "optimizer")),
    ]
    recomputed = lambda layer, _: clock.enter("recompute" if clock.part == "backward" else clock.part)
    layers = trainer.model.get_base_model().model.layers
    hooks = [layer.register_forward_pre_hook(recomputed) for layer in layers]
    hooks += [layer.register_forward_hook(lambda *_: clock.leave(), always_call=True) for layer in layers]
    with patched(places):
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()


class Measure(TrainerCallback):
    """Notes the parts of each step, and before a step undoes the saving whose turn it is."""

    def __init__(self, clock: Clock, arms: list[str]) -> None:
        """Take the clock and what to undo in each step; an empty name undoes nothing."""
        self.clock, self.arms, self.undone = clock, arms, contextlib.ExitStack()
        self.steps: list[dict[str, float]] = []
        self.trainer: Any = None

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Undo a saving and start the clock."""
        for context in undo(self.arms[state.global_step], self.trainer):
            self.undone.enter_context(context)
        self.clock.restart()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Stop the clock and put the saving back."""
        self.clock._charge()
        self.steps.append(dict(self.clock.seconds))
        self.undone.close()
        arm = self.arms[len(self.steps) - 1]
        line = f"step {len(self.steps)} of {len(self.arms)}: {sum(self.clock.seconds.values()):.2f} s"
        print(f"{line}, without {arm}" if arm else line, flush=True)


def undo(arm: str, trainer: Any) -> list[contextlib.AbstractContextManager]:
    """Returns what takes a saving away for the length of a step."""
    if arm == "head":
        return [patched([(scoring, "_labelled", lambda model, spoken_BT: model)])]
    if arm == "compact":
        return [patched([(trl_utils, "_use_triton", lambda device: device.type == "cuda")])]
    if arm == "expanded":
        return [packed_again(trainer.model)]
    return [operators()] if arm == OPERATORS else []


@contextlib.contextmanager
def operators() -> Iterator[None]:
    """Prints the operators that took longest."""
    on_gpu = torch.cuda.is_available()
    kinds = [torch.profiler.ProfilerActivity.CPU] + [torch.profiler.ProfilerActivity.CUDA] * on_gpu
    with torch.profiler.profile(activities=kinds) as seen:
        yield
    order = "self_cuda_time_total" if on_gpu else "self_cpu_time_total"
    print(seen.key_averages().table(sort_by=order, row_limit=20, max_name_column_width=44))


@contextlib.contextmanager
def packed_again(model: Any) -> Iterator[None]:
    """Takes expanded weights away from the layers that have them."""
    expanded = [
        module for module in model.modules() if "forward" in vars(module) and hasattr(module, "quant_state")
    ]
    kept = [vars(layer).pop("forward") for layer in expanded]
    try:
        yield
    finally:
        for layer, forward in zip(expanded, kept, strict=True):
            layer.forward = forward


def make_trainer(options: argparse.Namespace, values: dict[str, Any], folder: str, steps: int) -> Any:
    """Builds what notebook 05 builds, at fewer tickets per step and a learning rate of 0."""
    on_gpu = torch.cuda.is_available()
    tokenizer = language.load_tokenizer(values["MODEL"])
    model = language.load_model(values["MODEL"], quantize=values["QUANTIZE"], dtype=values["DTYPE"])
    policy = language.load_adapter(model, options.adapter, trainable=True)
    tickets = desk.load_tickets("train")
    per_pass = min(values["EPISODES_PER_PASS"], values["GROUP_SIZE"] * options.prompts)
    config = GRPOConfig(
        output_dir=folder,
        max_steps=steps,
        per_device_train_batch_size=per_pass,
        gradient_accumulation_steps=values["GROUP_SIZE"] * options.prompts // per_pass,
        num_generations=values["GROUP_SIZE"],
        max_completion_length=values["MAX_EPISODE_TOKENS"],
        learning_rate=0.0,
        temperature=values["TEMPERATURE"],
        beta=values["BETA"],
        epsilon=values["CLIP_EPSILON"],
        loss_type=values["LOSS_TYPE"],
        scale_rewards=values["SCALE_REWARDS"],
        bf16=policy.dtype == torch.bfloat16,
        use_cpu=not on_gpu,
        activation_checkpointing=values["CHECKPOINTING"],
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        seed=values["SEED"],
    )
    sampling = Sampling(
        temperature=values["TEMPERATURE"],
        max_turn_tokens=values["MAX_TURN_TOKENS"],
        max_episode_tokens=values["MAX_EPISODE_TOKENS"],
        max_batch=values["ROLLOUT_BATCH"],
    )
    rows = [{"ticket": index} for index in range(len(tickets))]
    open_ticket = lambda row: DeskConversation(tickets[row["ticket"]])
    pays = lambda conversation: conversation.episode.total_reward
    return grpo.make_grpo_trainer(policy, tokenizer, rows, open_ticket, pays, config, sampling)


def measure(options: argparse.Namespace, values: dict[str, Any]) -> dict[str, Any]:
    """Runs the profiled steps and the compared ones; returns the record's results."""
    arms = ["head"] if torch.cuda.is_available() else ["head", "compact"]
    if values["QUANTIZE"] and not torch.cuda.is_available():
        arms.append("expanded")
    first = options.steps + options.operators
    order = [""] * options.steps + [OPERATORS] * options.operators + ["", *arms] * options.rounds
    clock = Clock(torch.cuda.is_available())
    with tempfile.TemporaryDirectory() as folder:
        trainer = make_trainer(options, values, folder, len(order))
        seen = Measure(clock, order)
        seen.trainer = trainer
        trainer.add_callback(seen)
        replay(trainer, first)
        with clocked(trainer, clock):
            trainer.train()
        logged = grpo.read_steps(Path(folder))
    profiled = seen.steps[: options.steps]
    parts = {part: sum(step.get(part, 0.0) for step in profiled) / len(profiled) for part in PARTS}
    batch = trainer.played.rollouts
    return {
        "unit": "seconds" if torch.cuda.is_available() else "processor seconds",
        "episodes": len(batch),
        "prompt_tokens": sum(len(r.prompt_ids) for r in batch),
        "episode_tokens": sum(len(r.completion_ids) for r in batch),
        "sampled_tokens": sum(sum(r.env_mask) for r in batch),
        "parts": parts,
        "savings": compare(
            arms, order[options.steps :], seen.steps[options.steps :], logged[options.steps :]
        ),
    }


def replay(trainer: Any, first: int) -> None:
    """From step `first` on, hands the same episodes out again and plays none."""
    play, kept = trainer.play, []

    def run(rows: list[int]) -> dict[str, list]:
        if trainer.state.global_step < first or not kept:
            kept[:] = [(play(rows), trainer.spoken, trainer.idle)]
        out, trainer.spoken, trainer.idle = kept[0]
        return out

    trainer.play = run


def compare(
    arms: list[str], order: list[str], steps: list[dict[str, float]], logged: list[dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Returns the median seconds of an update with everything saved and with each saving undone."""
    update = [sum(s for part, s in step.items() if not PARTS[part].startswith("playing")) for step in steps]
    own = lambda arm: [value for value, name in zip(update, order, strict=True) if name == arm]
    values = lambda arm, key: [row[key] for row, name in zip(logged, order, strict=True) if name == arm]
    saved = statistics.median(own(""))
    found = {}
    for arm in arms:
        pairs = [
            (a, b)
            for key in ("loss", "grad_norm")
            for a, b in zip(values("", key), values(arm, key), strict=True)
        ]
        found[arm] = {
            "undone_s": statistics.median(own(arm)),
            "saved_s": saved,
            "ratio": statistics.median(own(arm)) / saved,
            "all_s": {"with": own(""), "without": own(arm)},
            "largest_difference": max(abs(a - b) for a, b in pairs),
            "grad_norm": values(arm, "grad_norm")[0],
        }
    return found


def show(results: dict[str, Any]) -> None:
    """Prints both tables."""
    total = sum(results["parts"].values())
    counts = " ".join(f"{results[k]} {k.replace('_', ' ')}," for k in ("episodes", "prompt_tokens"))
    print(f"{counts} {results['episode_tokens']} after it, {results['sampled_tokens']} of them sampled\n")
    print(f"{'part of a step':50s} {results['unit']:>18s}  share")
    for part, name in PARTS.items():
        seconds = results["parts"][part]
        print(f"{name:50s} {seconds:18.3f}  {seconds / total:5.1%}")
    print(f"{'sum':50s} {total:18.3f}\n")
    print(
        f"{'saving':10s} {'update without':>15s} {'with':>8s} {'ratio':>6s}   loss, gradient norm differ by"
    )
    for arm, found in results["savings"].items():
        line = f"{arm:10s} {found['undone_s']:15.3f} {found['saved_s']:8.3f} {found['ratio']:6.3f}"
        print(f"{line}   {found['largest_difference']:.1e} (norm {found['grad_norm']:.3f})")


def main() -> None:
    """Run, print, keep the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--profile", default="cpu")
    parser.add_argument("--adapter", default="runs/cpu/04_qlora_sft/adapter", help="folder from notebook 04")
    parser.add_argument("--prompts", type=int, default=2, help="tickets per step")
    parser.add_argument("--steps", type=int, default=2, help="profiled steps")
    parser.add_argument("--rounds", type=int, default=3, help="repetitions of each compared update")
    parser.add_argument("--operators", action="store_true", help="one more step, under torch.profiler")
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="NAME=VALUE", help="other values of notebook 05"
    )
    parser.add_argument("--out", default=str(RECORD.relative_to(ROOT)), help="the record; - keeps none")
    options = parser.parse_args()
    if not Path(options.adapter).is_dir():
        parser.error(f"no adapter in {options.adapter}; run notebook 04 first, or pass --adapter FOLDER.")
    notebook = ROOT / "notebooks" / f"{STEM}.ipynb"
    known = read_parameters(notebook)
    own = dict(entry.split("=", 1) for entry in options.set)
    values = {name: parameter.default for name, parameter in known.items()}
    values |= load_profile(options.profile).notebooks[STEM]
    values |= {name: parse_text(text, known[name]) for name, text in own.items()}
    start = time.monotonic()
    results = measure(options, values)
    show(results)
    if options.out != "-":
        record = {
            "versions": records.versions(),
            "git": machine.git_state(ROOT),
            "hardware": machine.hardware(),
            "parameters": {
                "profile": options.profile,
                "prompts": options.prompts,
                "steps": options.steps,
                "rounds": options.rounds,
                "notebook": values,
            },
            "results": results,
            "time_s": round(time.monotonic() - start, 1),
            "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        }
        records.write_json(ROOT / options.out, record)


if __name__ == "__main__":
    main()
