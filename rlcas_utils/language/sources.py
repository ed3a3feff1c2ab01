"""From a model's short name to a folder or hub id that transformers can load.

``tiny`` and ``smollm2-135m`` are made once and kept under ``runs/cache/``. A folder is made under another
name and renamed when it is complete, so a process that is killed, or two at once, never leave a
half-written model behind.
"""

import hashlib
import os
import shutil
import uuid
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from transformers.utils import logging as transformers_logging

from rlcas_utils.config import project_root
from rlcas_utils.language import gguf, tiny

TINY = "tiny"
SMOLLM2 = "smollm2-135m"


def cache_folder() -> Path:
    """Return the folder that keeps converted models; it is safe to delete."""
    return project_root() / "runs" / "cache"


def resolve_source(source: str | Path) -> str:
    """Return what ``from_pretrained`` takes for a source.

    Args:
        source: ``"tiny"``, ``"smollm2-135m"``, a folder with a saved model, or a hub id such as
            ``"Qwen/Qwen2.5-3B-Instruct"``.

    Returns:
        A folder as text, or the hub id.
    """
    if source == TINY:
        return str(
            _made_once(cache_folder() / tiny_name(), lambda folder: tiny.build_tiny(folder, _desk_texts()))
        )
    if source == SMOLLM2:
        return str(_made_once(cache_folder() / gguf.FOLDER, gguf.convert_gguf))
    return str(source)


def display_name(source: str | Path) -> str:
    """Return the name of a source for tables and model cards."""
    if source == SMOLLM2:
        return gguf.DISPLAY_NAME
    if source == TINY:
        return "tiny Qwen2 (random weights)"
    return Path(source).name if Path(source).is_dir() else str(source)


def tiny_name() -> str:
    """Return a folder name that changes with the text the vocabulary is built from."""
    digest = hashlib.sha256("\0".join(_desk_texts()).encode()).hexdigest()[:8]
    return f"tiny-{tiny.EMBEDDING_SCALE}-{digest}"


@lru_cache(maxsize=1)
def _desk_texts() -> tuple[str, ...]:
    """What is said at the desk: every seventh training ticket, played by the oracle, as a chat."""
    from rlcas_utils import desk, trajectories

    oracle = desk.OracleAgent()
    episodes = trajectories.collect(lambda seed: oracle, desk.load_tickets("train")[::7], [0], "oracle")
    chats = [trajectories.to_chat(episode)["messages"] for episode in episodes]
    return tuple(message["content"] for messages in chats for message in messages)


def _made_once(target: Path, make: Callable[[Path], None]) -> Path:
    if target.is_dir():
        return target
    unfinished = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
    unfinished.mkdir(parents=True)
    try:
        transformers_logging.disable_progress_bar()
        make(unfinished)
        os.replace(unfinished, target)
    except OSError:
        if not target.is_dir():  # otherwise another process finished first, and its folder is as good
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return target
