"""The two places where vLLM can run: in the training process, beside the trainer, or as a server.

Both are written for the interface of vLLM 0.11 and later. No GPU was at hand: the tests drive them with a
stand-in of that interface.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rlcas_utils.config import ConfigError
from rlcas_utils.rollouts.sampling import Sampling

MEMORY_SHARE = 0.35  # of the GPU for vLLM's copy of the base and its cache; the rest is the trainer's
TIMEOUT_S = 1800


class InProcess:
    """vLLM in this process, on this process's GPU ("colocated")."""

    def __init__(self, model: Any, length: int) -> None:
        """Load the base model once more, in vLLM, with room for an adapter.

        Args:
            model: PEFT model, from whose base name vLLM loads the same weights.
            length: Tokens of the longest prompt and episode.
        """
        from vllm import LLM

        settings = next(iter(model.peft_config.values()))
        several = int(os.environ.get("WORLD_SIZE", "1")) > 1
        self._llm = LLM(
            model=settings.base_model_name_or_path,
            quantization="bitsandbytes" if _is_4bit(model) else None,
            enable_lora=True,
            max_lora_rank=max(8, settings.r),
            max_loras=1,
            enable_prefix_caching=True,
            gpu_memory_utilization=MEMORY_SHARE,
            max_model_len=length,
            logprobs_mode="processed_logprobs",  # after the temperature, as the trainer computes them
            distributed_executor_backend="external_launcher" if several else None,
        )
        self._request: Any = None
        self._kept = Path(tempfile.mkdtemp(prefix="vllm-adapter-"))

    def load(self, adapter: Path, name: str, number: int) -> None:
        """Keep a copy of the adapter and name it in the requests from now on."""
        from vllm.lora.request import LoRARequest

        shutil.rmtree(self._kept, ignore_errors=True)
        shutil.copytree(adapter, self._kept)
        self._request = LoRARequest(name, number, str(self._kept))

    def sample(
        self, prompts: list[list[int]], seeds: list[int], stops: list[int], sampling: Sampling
    ) -> list[tuple[list[int], list[float]]]:
        """Draw one turn per prompt."""
        from vllm import SamplingParams

        settings = [
            SamplingParams(
                temperature=sampling.temperature,
                max_tokens=sampling.max_turn_tokens,
                stop_token_ids=stops,
                seed=seed,
                logprobs=0,  # the drawn token's own
                detokenize=False,
            )
            for seed in seeds
        ]
        outputs = self._llm.generate(
            [{"prompt_token_ids": ids} for ids in prompts],
            settings,
            lora_request=self._request,
            use_tqdm=False,
        )
        turns = []
        for done in (output.outputs[0] for output in outputs):
            ids = _whole(done.token_ids, done.finish_reason, stops)
            logprobs = [step[token].logprob for token, step in zip(ids, done.logprobs, strict=True)]
            turns.append((ids, logprobs))
        return turns


class Server:
    """A running `vllm serve`; it must see the folder where adapters are saved, so it shares the file system.

    Start it with VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 and `--enable-lora --max-lora-rank 16
    --logprobs-mode processed_logprobs --enable-prefix-caching`, and with as many `--max-loras` as there are
    training processes.
    """

    def __init__(self, url: str) -> None:
        """Take the address, such as http://localhost:8000."""
        self._url, self._name = url.rstrip("/"), ""

    def load(self, adapter: Path, name: str, number: int) -> None:
        """Load the new adapter, then drop the one before."""
        before, self._name = self._name, name
        self._post("/v1/load_lora_adapter", {"lora_name": name, "lora_path": str(adapter.resolve())})
        if before:
            self._post("/v1/unload_lora_adapter", {"lora_name": before})

    def sample(
        self, prompts: list[list[int]], seeds: list[int], stops: list[int], sampling: Sampling
    ) -> list[tuple[list[int], list[float]]]:
        """Draw one turn per prompt: one request each, because a request has one seed; the server batches."""
        common = {
            "model": self._name,
            "temperature": sampling.temperature,
            "max_tokens": sampling.max_turn_tokens,
            "stop_token_ids": stops,
            "logprobs": 0,
            "return_token_ids": True,
        }
        bodies = [common | {"prompt": ids, "seed": seed} for ids, seed in zip(prompts, seeds, strict=True)]
        with ThreadPoolExecutor(max(1, len(bodies))) as threads:
            answers = list(threads.map(lambda body: self._post("/v1/completions", body), bodies))
        choices = [json.loads(answer)["choices"][0] for answer in answers]
        return [
            (_whole(c["token_ids"], c["finish_reason"], stops), c["logprobs"]["token_logprobs"])
            for c in choices
        ]

    def _post(self, path: str, body: dict[str, Any]) -> str:
        data = json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
                return response.read().decode()
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")[:300]
            raise ConfigError(
                f"the vLLM server at {self._url} refused {path} ({error.code}: {text}). Start it as the "
                "docstring of rollouts/vllm_backends.py says."
            ) from error
        except OSError as error:
            raise ConfigError(
                f"no vLLM server answers at {self._url} ({error}). Start `vllm serve`, or use another engine."
            ) from error


def _whole(ids: Any, reason: str, stops: list[int]) -> list[int]:
    """Return a turn's ids; refuse one whose stop token is missing, which would pass for a turn that was cut.

    Raises:
        ConfigError: vLLM does not hand over stop tokens.
    """
    if not ids or (reason == "stop" and ids[-1] not in stops):
        raise ConfigError(
            f"vLLM ended a turn ({reason}) without handing over its stop token; the model would not learn to "
            "stop. Use a version that returns stop tokens (0.11), or the transformers engine."
        )
    return list(ids)


def _is_4bit(model: Any) -> bool:
    return any(type(module).__name__ == "Linear4bit" for module in model.modules())
