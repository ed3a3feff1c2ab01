"""Which number format a device trains in, and what a step needs in memory; pure functions."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Precision:
    """Number formats of one device.

    Attributes:
        dtype: Format of the base model's weights and of computation on them.
        bf16: The trainers' ``bf16`` flag.
        fp16: The trainers' ``fp16`` flag; then trainable weights must be float32.
    """

    dtype: str
    bf16: bool
    fp16: bool


def precision(capability: tuple[int, int] | None) -> Precision:
    """Choose the number formats of a device.

    Args:
        capability: CUDA compute capability such as ``(8, 6)`` for an A10G, or None without CUDA.

    Returns:
        float32 without CUDA, float16 below 8.0 (T4: bfloat16 is emulated there), bfloat16 from 8.0 on.
    """
    if capability is None:
        return Precision("float32", bf16=False, fp16=False)
    if capability < (8, 0):
        return Precision("float16", bf16=False, fp16=True)
    return Precision("bfloat16", bf16=True, fp16=False)


def device_capability() -> tuple[int, int] | None:
    """Return the compute capability of the first CUDA device, or None."""
    import torch

    return torch.cuda.get_device_capability() if torch.cuda.is_available() else None


def logits_gib(batch: int, tokens: int, vocabulary: int, bytes_per_number: int = 4) -> float:
    """Return the size of one copy of the logits, in GiB.

    They, not the weights, fill the memory of small models: 8 x 512 tokens of Qwen2.5 (151,936 entries) are
    2.3 GiB in float32, and the loss holds more than one copy.

    Args:
        batch: Sequences.
        tokens: Tokens per sequence.
        vocabulary: Entries of the vocabulary.
        bytes_per_number: 4 for float32.
    """
    return batch * tokens * vocabulary * bytes_per_number / 2**30


def weights_gib(num_parameters: int, num_embedding: int, dtype_bytes: int, quantize: bool) -> float:
    """Return the size of the weights, in GiB.

    Args:
        num_parameters: All parameters.
        num_embedding: Those of embedding and head, which NF4 leaves alone.
        dtype_bytes: Bytes of the number format.
        quantize: True for NF4 with double quantisation: 4.127 bits each.
    """
    inner = num_parameters - num_embedding
    inner_bytes = inner * 4.127 / 8 if quantize else inner * dtype_bytes
    return (inner_bytes + num_embedding * dtype_bytes) / 2**30
