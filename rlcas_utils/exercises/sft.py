"""The exercises of notebook 04: the labels of a chat, the loss on its answers, the weight after a merge."""

from __future__ import annotations

import torch

from rlcas_utils.exercises.checker import Exercise

IGNORED = -100


def _answer_labels(input_ids: list[int], header: list[int], end_id: int) -> list[int]:
    labels, answering = [], False
    for position, token in enumerate(input_ids):
        labels.append(token if answering else -100)
        if token == end_id:
            answering = False
        elif input_ids[: position + 1][-len(header) :] == header:
            answering = True
    return labels


def _answer_loss(logits_TV: torch.Tensor, labels_T: torch.Tensor) -> torch.Tensor:
    target_T = labels_T[1:]
    kept_T = target_T != -100
    log_p_KV = logits_TV[:-1][kept_T].log_softmax(dim=-1)
    return -log_p_KV.gather(1, target_T[kept_T, None]).mean()


def _merged_weight(
    base_OI: torch.Tensor, a_RI: torch.Tensor, b_OR: torch.Tensor, alpha: float
) -> torch.Tensor:
    rank = a_RI.shape[0]
    return base_OI + alpha / rank * (b_OR @ a_RI)


def _labels_without_end(input_ids: list[int], header: list[int], end_id: int) -> list[int]:
    right = _answer_labels(input_ids, header, end_id)
    return [IGNORED if label == end_id else label for label in right]


def _labels_with_header(input_ids: list[int], header: list[int], end_id: int) -> list[int]:
    labels = _answer_labels(input_ids, header, end_id)
    for start in range(len(input_ids) - len(header) + 1):
        if input_ids[start : start + len(header)] == header:
            labels[start : start + len(header)] = header
    return labels


def _labels_with_every_end(input_ids: list[int], header: list[int], end_id: int) -> list[int]:
    right = _answer_labels(input_ids, header, end_id)
    return [token if token == end_id else label for token, label in zip(input_ids, right, strict=True)]


def _labels_of_the_last_answer(input_ids: list[int], header: list[int], end_id: int) -> list[int]:
    right = _answer_labels(input_ids, header, end_id)
    ends = [position for position, label in enumerate(right) if label == end_id]
    start = ends[-2] + 1 if len(ends) > 1 else 0
    return [IGNORED] * start + right[start:]


def _losses(logits_TV: torch.Tensor, labels_T: torch.Tensor) -> torch.Tensor:
    """Return the loss of each labelled position, given logits and labels that are already aligned."""
    return torch.nn.functional.cross_entropy(logits_TV, labels_T, reduction="none")[labels_T != IGNORED]


def _log_probabilities(*rows: list[float]) -> torch.Tensor:
    return torch.tensor(rows).log()


answer_labels = Exercise(
    reference=_answer_labels,
    inputs=[
        ([1, 8, 5, 2, 1, 9, 7, 2], [1, 9], 2),
        ([1, 8, 5, 2, 1, 9, 7, 2, 1, 8, 6, 2, 1, 9, 7, 7, 2], [1, 9], 2),
    ],
    mistakes={
        "the end token carries no label; the model would never learn to stop.": _labels_without_end,
        "the header is labelled too; it belongs to the prompt, the model never has to write it.": (
            _labels_with_header
        ),
        "every end token is labelled, the customer's too: the mask looks at the token, not at whose it is.": (
            _labels_with_every_end
        ),
        "only the last answer is labelled; earlier turns are answers too.": _labels_of_the_last_answer,
        "everything is labelled, the customer's words too.": lambda ids, header, end_id: list(ids),
    },
)
answer_loss = Exercise(
    reference=_answer_loss,
    inputs=[
        (
            _log_probabilities([1 / 4, 1 / 2, 1 / 8, 1 / 8], [1 / 2, 1 / 8, 1 / 4, 1 / 8], [1 / 4] * 4),
            torch.tensor([IGNORED, 1, 2]),
        ),
        (
            _log_probabilities([1 / 8, 1 / 8, 1 / 4, 1 / 2], [1 / 2, 1 / 4, 1 / 8, 1 / 8], [1 / 4] * 4) + 1.0,
            torch.tensor([3, IGNORED, 1]),
        ),
    ],
    mistakes={
        "the logits at t are compared with the label at t; they predict the token at t + 1.": (
            lambda logits_TV, labels_T: _losses(logits_TV, labels_T).mean()
        ),
        "the sum is divided by all positions, those without a label too.": lambda logits_TV, labels_T: (
            _losses(logits_TV[:-1], labels_T[1:]).sum() / (len(labels_T) - 1)
        ),
        "it is a sum; the loss of a long answer would be larger for its length alone.": (
            lambda logits_TV, labels_T: _losses(logits_TV[:-1], labels_T[1:]).sum()
        ),
        "the logits are not normalised: take log_softmax before you pick the label's entry.": (
            lambda logits_TV, labels_T: (
                -logits_TV[:-1][labels_T[1:] != IGNORED]
                .gather(1, labels_T[1:][labels_T[1:] != IGNORED, None])
                .mean()
            )
        ),
    },
)
merged_weight = Exercise(
    reference=_merged_weight,
    inputs=[
        (torch.eye(2), torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0], [0.0]]), 2.0),
        (
            torch.zeros(2, 2),
            torch.tensor([[1.0, 0.0], [1.0, 1.0]]),
            torch.tensor([[1.0, 2.0], [0.0, 1.0]]),
            4.0,
        ),
    ],
    mistakes={
        "the scale alpha / r is missing.": lambda base_OI, a_RI, b_OR, alpha: base_OI + b_OR @ a_RI,
        "the scale is alpha / r, here it is alpha.": lambda base_OI, a_RI, b_OR, alpha: (
            base_OI + alpha * (b_OR @ a_RI)
        ),
        "the factors are swapped: the layer applies A first, so the product is B A.": (
            lambda base_OI, a_RI, b_OR, alpha: base_OI + alpha / a_RI.shape[0] * (a_RI @ b_OR)
        ),
        "the frozen weight is gone; the adapter adds to it.": lambda base_OI, a_RI, b_OR, alpha: (
            alpha / a_RI.shape[0] * (b_OR @ a_RI)
        ),
    },
)
