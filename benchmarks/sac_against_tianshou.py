"""Trains this course's SAC-Discrete beside Tianshou's on the same desk, and compares return and time.

Three arms, one after the other for every seed, in one process with one thread:

- `plain`: the course's learner without what it adds to the paper: fresh tickets only, target entropy and
  learning rates constant. It sets the number of environment steps of its seed.
- `tianshou`: Tianshou's DiscreteSAC on as many steps (rounded up to its number of environments), with its own
  collector, buffer and trainer, set up as in its own DiscreteSAC example: ten environments in a
  DummyVectorEnv, ten steps between two rounds of updates; automatic temperature.
- `course`: the learner as notebook 02 runs it, on as many episodes as `plain`.

Equal for all: tickets, message vectors, layers (normalised), batch size, learning rates, weight decay,
discount, tau, updates per step, random episodes before the first update; the values are those of notebook
02's parameters cell. `plain` and `tianshou` share the target entropy too, which is chosen among --shares by
Tianshou's validation return after --pilot-steps with another seed. What makes Tianshou faster is on: fused
optimisers, no log, no progress bar, no test episodes, no info in the buffer, unvalidated distributions. Both
are started once before any clock runs, because Tianshou compiles functions then. Every policy is judged by
argmax with the same code.

    make benchmark
    build/benchmark-env/bin/python benchmarks/sac_against_tianshou.py --episodes 100 --seeds 0 --out -
"""

import argparse
import contextlib
import dataclasses
import datetime
import hashlib
import importlib.util
import io
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from rlcas_utils import desk, machine, records, statistics
from rlcas_utils.config import project_root
from rlcas_utils.parameters import read_parameters
from rlcas_utils.sac.agent import SacAgent, load_expert
from rlcas_utils.sac.config import SacConfig
from rlcas_utils.sac.losses import entropy_target
from rlcas_utils.sac.text import hashed_components, make_training_desk, table
from rlcas_utils.sac.trainer import single_thread, train

ROOT = project_root()
NOTEBOOK = ROOT / "notebooks" / "02_sac_training.ipynb"
EXPERT = ROOT / "data" / "samples" / "sac_expert.safetensors"
RECORD = ROOT / "results" / "benchmarks" / "sac_against_tianshou.json"
JUDGED = ("validation", "benchmark")
ARMS = ("plain", "tianshou", "course")

Vectors = Mapping[str, NDArray[np.float32]]
MakeEnv = Callable[[], gymnasium.Env]


@dataclasses.dataclass
class Clock:
    """Seconds of the wall clock and of the processor, which a busy machine stretches less."""

    wall_s: float = 0.0
    cpu_s: float = 0.0

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Add the time spent inside."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.wall_s += time.perf_counter() - wall
        self.cpu_s += time.process_time() - cpu


@dataclasses.dataclass
class Trained:
    """A policy (observations to logits of shape (B, A)) and what it took to train it."""

    policy: Callable[[torch.Tensor], torch.Tensor]
    steps: int
    updates: int
    clock: Clock


class WithoutInfo(gymnasium.Wrapper):
    """The same environment with nothing beside the transition, so that no buffer has to store it."""

    def reset(self, **options: Any) -> tuple[Any, dict]:
        """Start an episode."""
        return self.env.reset(**options)[0], {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
        """Take an action."""
        return *self.env.step(action)[:4], {}


def course_config(num_episodes: int) -> SacConfig:
    """Read the settings of notebook 02 without running it."""
    given = {name.lower(): parameter.default for name, parameter in read_parameters(NOTEBOOK).items()}
    names = {field.name for field in dataclasses.fields(SacConfig)} & set(given)
    values = {name: tuple(v) if isinstance(v := given[name], list) else v for name in sorted(names)}
    return SacConfig(**values | {"num_episodes": num_episodes})


def plain_config(course: SacConfig, share: float) -> SacConfig:
    """Take away what Tianshou's learner does not have, and hold the target entropy at a share of ln A."""
    constant = {"initial_entropy_fraction": share, "target_entropy_fraction": share, "final_lr_share": 1.0}
    return dataclasses.replace(course, return_share=0.0, **constant)


def tickets(num_training: int) -> dict[str, list[desk.Ticket]]:
    """Return the tickets of all splits; of training, so many evenly spaced ones (0: all)."""
    own = {split: list(desk.load_tickets(split)) for split in ("train", *JUDGED)}
    if num_training:
        chosen = np.linspace(0, len(own["train"]) - 1, num_training).astype(int)
        own["train"] = [own["train"][i] for i in chosen]
    return own


def read_messages(reader: str, own: Mapping[str, Sequence[desk.Ticket]], cache: Path) -> dict[str, Vectors]:
    """Return the vector of every message, by split; what the expert's encoder says is kept on disk."""
    messages = {split: [ticket.query for ticket in some] for split, some in own.items()}
    if reader == "hashed":
        size = read_parameters(NOTEBOOK)["TEXT_COMPONENTS"].default
        read = hashed_components(messages["train"], size)
        return {split: table(read, some) for split, some in messages.items()}
    everything = sorted({query for some in messages.values() for query in some})
    key = hashlib.sha256("\0".join([records.sha256_file(EXPERT), *everything]).encode()).hexdigest()[:16]
    file = cache / f"vectors-{key}.npy"
    if not file.exists():
        buffer = io.BytesIO()
        np.save(buffer, load_expert(EXPERT)[0].text(everything))
        records.write_atomic(file, buffer.getvalue())
    vectors = dict(zip(everything, np.load(file), strict=True))
    return {split: {query: vectors[query] for query in some} for split, some in messages.items()}


def train_ours(make_env: MakeEnv, config: SacConfig, seed: int) -> Trained:
    """Train with this course's trainer."""
    clock = Clock()
    with clock.running():
        result = train(make_env, config, seed)
    return Trained(result.actor, result.num_steps, result.num_updates, clock)


def train_tianshou(make_env: MakeEnv, config: SacConfig, seed: int, num_steps: int, num_envs: int) -> Trained:
    """Train with Tianshou's trainer on `num_steps` environment steps, random ones included."""
    from tianshou.data import Collector, VectorReplayBuffer
    from tianshou.env import DummyVectorEnv
    from tianshou.trainer import OffPolicyTrainerParams

    torch.distributions.Distribution.set_default_validate_args(False)
    clock = Clock()
    # Above 20 updates a round Tianshou shows a progress bar, whatever `show_progress` says.
    with single_thread(), contextlib.redirect_stderr(io.StringIO()), clock.running():
        np.random.seed(seed)
        torch.manual_seed(seed)
        environments = DummyVectorEnv([lambda: WithoutInfo(make_env())] * num_envs)
        environments.seed(seed)
        algorithm = tianshou_algorithm(make_env(), config)
        buffer = VectorReplayBuffer(2 * num_steps, num_envs, random_seed=seed)  # nothing is overwritten
        collector = Collector(algorithm, environments, buffer)
        collector.reset()
        random = collector.collect(n_episode=config.warmup_episodes, random=True).n_collected_steps
        params = OffPolicyTrainerParams(
            max_epochs=1,
            epoch_num_steps=num_steps - random,
            training_collector=collector,
            collection_step_num_env_steps=num_envs,
            update_step_num_gradient_steps_per_sample=config.updates_per_step,
            batch_size=config.batch_size,
            show_progress=False,
            verbose=False,
        )
        done = algorithm.run_training(params)
    actor = algorithm.policy.actor
    updates = done.update_step * round(config.updates_per_step * num_envs)
    return Trained(lambda observation_BO: actor(observation_BO)[0], random + done.train_step, updates, clock)


def tianshou_algorithm(env: gymnasium.Env, config: SacConfig) -> Any:
    """Build Tianshou's DiscreteSAC with the layers, optimisers and settings of ours."""
    from tianshou.algorithm.modelfree.discrete_sac import DiscreteSAC, DiscreteSACPolicy
    from tianshou.algorithm.modelfree.sac import AutoAlpha
    from tianshou.algorithm.optim import TorchOptimizerFactory
    from tianshou.utils.net.common import Net
    from tianshou.utils.net.discrete import DiscreteActor, DiscreteCritic

    def hidden() -> Net:
        norm = {"norm_layer": torch.nn.LayerNorm, "norm_args": {"elementwise_affine": False}}
        return Net(state_shape=env.observation_space.shape, hidden_sizes=list(config.hidden_sizes), **norm)

    def adam(lr: float, weight_decay: float = config.weight_decay) -> TorchOptimizerFactory:
        return TorchOptimizerFactory(torch.optim.AdamW, lr=lr, weight_decay=weight_decay, fused=True)

    num_actions = int(env.action_space.n)
    actor = DiscreteActor(preprocess_net=hidden(), action_shape=num_actions, softmax_output=False)
    critics = [DiscreteCritic(preprocess_net=hidden(), last_size=num_actions) for _ in range(2)]
    wanted = entropy_target(config.target_entropy_fraction, num_actions)
    return DiscreteSAC(
        policy=DiscreteSACPolicy(actor=actor, action_space=env.action_space),
        policy_optim=adam(config.actor_lr),
        critic=critics[0],
        critic_optim=adam(config.critic_lr),
        critic2=critics[1],
        critic2_optim=adam(config.critic_lr),
        tau=config.tau,
        gamma=config.gamma,
        alpha=AutoAlpha(wanted, math.log(config.initial_alpha), adam(config.alpha_lr, 0.0)),
    )


@dataclasses.dataclass
class Board:
    """What all arms share: tickets and message vectors by split."""

    tickets: Mapping[str, Sequence[desk.Ticket]]
    vectors: Mapping[str, Vectors]

    def make_env(self) -> gymnasium.Env:
        """Make the desk that policies are trained on."""
        return make_training_desk(self.vectors["train"])

    def judge(self, trained: Trained, seed: int) -> dict[str, list[dict[str, Any]]]:
        """Return the argmax episodes of a policy on validation and benchmark."""
        vectors = {query: vector for split in JUDGED for query, vector in self.vectors[split].items()}
        agent = SacAgent(trained.policy, lambda texts: np.array([vectors[t] for t in texts]))
        return {split: desk.evaluate(agent, self.tickets[split], name="sac", seed=seed) for split in JUDGED}


def mean(rows: Sequence[Mapping[str, Any]], field: str) -> float:
    """Return the mean of one field over episodes."""
    return float(np.mean([row[field] for row in rows]))


def summary(arm: str, seed: int, trained: Trained, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict:
    """Return one run as JSON."""
    scores = {
        split: {"return": round(mean(some, "return"), 4), "resolved": round(mean(some, "resolved"), 4)}
        for split, some in rows.items()
    }
    seconds = {name: round(value, 2) for name, value in dataclasses.asdict(trained.clock).items()}
    counts = {"steps": trained.steps, "updates": trained.updates}
    return {"arm": arm, "seed": seed, **counts, **seconds, **scores}


def compare(runs: Sequence[Mapping[str, Any]], rows: Mapping[str, Mapping[str, list]], arm: str) -> dict:
    """Compare one of our arms with Tianshou's: return paired by seed and ticket, seconds per step by seed.

    Args:
        runs: What `summary` gave, of all arms.
        rows: By arm and split, the episodes of all seeds.
        arm: `plain` or `course`.

    Returns:
        By split the mean difference in return with its 95 % interval over tickets and its value by seed; and
        the ratios of seconds per environment step, ours over Tianshou's, by seed with their geometric mean.
    """
    found: dict[str, Any] = {}
    for split in JUDGED:
        estimate = statistics.paired_difference(rows[arm][split], rows["tianshou"][split]).estimate
        found[split] = {"difference": estimate.value, "ci95": estimate.ci95, "tickets": estimate.n}
    pairs = [
        (ours, theirs)
        for ours in runs
        for theirs in runs
        if (ours["arm"], theirs["arm"]) == (arm, "tianshou") and ours["seed"] == theirs["seed"]
    ]
    for split in JUDGED:
        found[split]["by_seed"] = [round(a[split]["return"] - b[split]["return"], 4) for a, b in pairs]
    for clock in ("wall_s", "cpu_s"):
        ratios = [(a[clock] / a["steps"]) / (b[clock] / b["steps"]) for a, b in pairs]
        found[f"{clock}_per_step_ratio"] = {
            "geometric_mean": round(math.exp(float(np.mean(np.log(ratios)))), 4),
            "by_seed": [round(ratio, 4) for ratio in ratios],
        }
    return found


def choose_share(course: SacConfig, board: "Board", options: argparse.Namespace) -> tuple[float, dict]:
    """Let Tianshou try every target entropy with a seed of its own; the best validation return decides."""
    if len(options.shares) == 1:
        return options.shares[0], {}
    returns, seed = {}, max(options.seeds) + 1
    for share in options.shares:
        config = plain_config(course, share)
        trained = train_tianshou(board.make_env, config, seed, options.pilot_steps, options.envs)
        returns[share] = round(mean(board.judge(trained, seed)["validation"], "return"), 4)
        print(f"pilot: share {share}, Tianshou's validation return {returns[share]}", flush=True)
    return max(returns, key=returns.__getitem__), returns


def show(runs: Sequence[Mapping[str, Any]], comparisons: Mapping[str, Mapping[str, Any]]) -> None:
    """Print all runs, then what the comparisons say."""
    console, grid = Console(width=110), Table()
    for head in ("seed", "arm", "steps", "updates", "wall s", "cpu s", "validation", "benchmark", "resolved"):
        grid.add_column(head, justify="left" if head == "arm" else "right")
    for run in runs:
        numbers = [f"{run[name]:.1f}" for name in ("wall_s", "cpu_s")]
        scores = [f"{run[split]['return']:.2f}" for split in JUDGED] + [f"{run['benchmark']['resolved']:.2f}"]
        counts = [str(run[name]) for name in ("steps", "updates")]
        grid.add_row(str(run["seed"]), run["arm"], *counts, *numbers, *scores)
    console.print(grid)
    for arm, found in comparisons.items():
        for split in JUDGED:
            own = found[split]
            low, high = own["ci95"] or (math.nan, math.nan)
            text = f"{own['difference']:+.2f} [{low:+.2f}, {high:+.2f}] over {own['tickets']} tickets"
            print(f"{arm} - tianshou, {split} return: {text}; by seed {own['by_seed']}")
        for clock in ("wall", "cpu"):
            own = found[f"{clock}_s_per_step_ratio"]
            text = f"{own['geometric_mean']:.2f}; by seed {own['by_seed']}"
            print(f"{arm} / tianshou, {clock} seconds per environment step: {text}")


def run_arms(board: Board, course: SacConfig, plain: SacConfig, options: argparse.Namespace) -> tuple:
    """Train and judge all arms, seed by seed; return the runs, and the episodes by arm and split."""
    runs, rows = [], {arm: {split: [] for split in JUDGED} for arm in ARMS}
    for seed in options.seeds:
        steps = 0
        for arm in ARMS:
            if arm == "tianshou":
                trained = train_tianshou(board.make_env, plain, seed, steps, options.envs)
            else:
                trained = train_ours(board.make_env, plain if arm == "plain" else course, seed)
            steps = steps or trained.steps
            played = board.judge(trained, seed)
            runs.append(summary(arm, seed, trained, played))
            for split in JUDGED:
                rows[arm][split] += played[split]
            print(f"seed {seed}, {arm}: {trained.steps} steps in {trained.clock.wall_s:.0f} s", flush=True)
    return runs, rows


def run_all(options: argparse.Namespace) -> dict[str, Any]:
    """Prepare, choose the target entropy, run all arms; return the record."""
    own = tickets(options.tickets)
    board = Board(own, read_messages(options.reader, own, ROOT / "build" / "benchmarks"))
    course = course_config(options.episodes)
    first = dataclasses.replace(plain_config(course, 0.5), num_episodes=16, warmup_episodes=10)
    train_tianshou(board.make_env, first, 0, train_ours(board.make_env, first, 0).steps + 40, options.envs)
    share, pilot = choose_share(course, board, options)
    plain = plain_config(course, share)
    runs, rows = run_arms(board, course, plain, options)
    settings = {"share": share, "plain": plain.to_json(), "course": course.to_json()}
    return {
        "versions": records.versions() | {"tianshou": metadata.version("tianshou")},
        "git": machine.git_state(ROOT),
        "hardware": machine.hardware() | {"threads": 1},
        "parameters": {name: value for name, value in vars(options).items() if name != "out"} | settings,
        "pilot": pilot,
        "runs": runs,
        "comparisons": {arm: compare(runs, rows, arm) for arm in ("plain", "course")},
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def main() -> None:
    """Run the comparison, print it and keep its record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--episodes", type=int, default=1500, help="training episodes of our arms")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--shares", type=float, nargs="+", default=[0.98, 0.3, 0.05], help="of ln A")
    parser.add_argument("--pilot-steps", type=int, default=1500, help="steps of each run that tries a share")
    parser.add_argument("--reader", choices=("expert", "hashed"), default="expert", help="of the messages")
    parser.add_argument("--tickets", type=int, default=2000, help="training tickets used; 0: all")
    parser.add_argument("--envs", type=int, default=10, help="environments of Tianshou's collector")
    parser.add_argument("--out", default=str(RECORD.relative_to(ROOT)), help="the record; - keeps none")
    options = parser.parse_args()
    if importlib.util.find_spec("tianshou") is None:
        parser.error(
            "Tianshou is not installed here, so there is nothing to compare with. Run `make benchmark`."
        )
    record = run_all(options)
    show(record["runs"], record["comparisons"])
    if options.out != "-":
        records.write_json(ROOT / options.out, record)


if __name__ == "__main__":
    main()
