"""What a model predicts for one text: masked tokens, classes, tags or an answer, by its output and at every layer.

The reading at a layer gives the states of that layer to the task head in place of the states of the last layer. The
task head was trained on the last layer only, so that a low probability below it need not mean that nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertology.encoder.encoder import ModelInputs, TaskEncoder
from bertology.encoder.tokens import SpecialToken, TokenisedInput
from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.resumable_encoder import ResumableEncoder

MAX_ANSWER_TOKENS = 30
CLASS_NAMES: Mapping[str, tuple[str, ...]] = {
    "nsp": ("next sentence", "random sentence"),
    "sop": ("in order", "swapped"),
}
"""Classes of the pretraining heads that read the first token; configurations do not name them."""


@dataclass(frozen=True)
class Candidate:
    """A token, class or tag and its probability."""

    text: str
    probability: float


@dataclass(frozen=True)
class TokenPrediction:
    """The most probable tokens, or tags, at one position."""

    position: int
    token: str
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True)
class ClassPrediction:
    """The classes of a task head by probability; `score` is the output of a regression, which has no classes."""

    task_head: str
    candidates: tuple[Candidate, ...]
    score: float | None = None


@dataclass(frozen=True)
class AnswerPrediction:
    """A span of tokens from `start` to `end`, both included, and the product of its ends' probabilities."""

    start: int
    end: int
    text: str
    probability: float


@dataclass(frozen=True)
class Predictions:
    """All that the task heads of a model say about one text; a model without a task head says nothing."""

    masked_tokens: tuple[TokenPrediction, ...] = ()
    next_token: tuple[Candidate, ...] = ()
    classes: tuple[ClassPrediction, ...] = ()
    tags: tuple[TokenPrediction, ...] = ()
    answers: tuple[AnswerPrediction, ...] = ()


@dataclass(frozen=True)
class LayerPredictions:
    """The predictions read from the states of one layer; layer 0 are the embeddings."""

    layer: int
    predictions: Predictions


def read_predictions(
    encoder: TaskEncoder,
    tokens: TokenisedInput,
    logits: Mapping[str, Tensor],
    *,
    n_candidates: int = 10,
    reference: Predictions | None = None,
) -> Predictions:
    """The predictions in the logits of a batch with one row.

    Masked tokens get their `n_candidates` most probable tokens, and those of the `reference`, so that two readings can
    be compared token by token.
    """
    rows = {name: values[0].float() for name, values in logits.items()}
    is_special = tokens.special_kinds != SpecialToken.NONE
    positions = [index for index, special in enumerate(is_special.tolist()) if not special]
    masked = [index for index in positions if int(tokens.ids[index]) == encoder.mask_token_id]
    compared = {prediction.position: prediction for prediction in reference.masked_tokens} if reference else {}
    vocabulary: Sequence[str] = ()
    if "mlm" in rows or "lm" in rows:
        vocabulary = _vocabulary(encoder)
    return Predictions(
        masked_tokens=tuple(
            TokenPrediction(
                index,
                tokens.tokens[index],
                _top(rows["mlm"][index], vocabulary, n_candidates, compared.get(index)),
            )
            for index in (masked if "mlm" in rows else ())
        ),
        next_token=_top(rows["lm"][-1], vocabulary, n_candidates, None) if "lm" in rows else (),
        classes=tuple(_classes(encoder, name, rows[name]) for name in ("label", "nsp", "sop") if name in rows),
        tags=_tags(encoder, tokens, rows, positions),
        answers=_answers(tokens, rows, n_candidates) if "answer_start" in rows else (),
    )


def predictions_by_layer(
    resumable: ResumableEncoder,
    tokens: TokenisedInput,
    inputs: ModelInputs,
    *,
    n_candidates: int = 10,
    reference: Predictions | None = None,
) -> list[LayerPredictions]:
    """The predictions read from the embeddings and from every layer, the last one last; `inputs` have one row."""
    trace = resumable.trace(inputs)
    states = [call.states for call in trace.layer_calls]
    outputs = [resumable.apply_task_heads(trace, layer_states) for layer_states in states]
    return [
        LayerPredictions(
            layer,
            read_predictions(resumable.encoder, tokens, output.logits, n_candidates=n_candidates, reference=reference),
        )
        for layer, output in enumerate([*outputs, trace.output])
    ]


def _vocabulary(encoder: TaskEncoder) -> Sequence[str]:
    """The strings of all token ids."""
    return encoder.tokeniser.token_strings


def _top(logits: Tensor, names: Sequence[str], n: int, compared: TokenPrediction | None) -> tuple[Candidate, ...]:
    probabilities = logits.softmax(-1)
    best: list[int] = torch.topk(probabilities, min(n, len(probabilities))).indices.tolist()
    texts = {names[index] if index < len(names) else f"id {index}": index for index in best}
    if compared is not None:
        indices = {name: index for index, name in enumerate(names)}
        texts |= {c.text: indices[c.text] for c in compared.candidates if c.text in indices}
    return tuple(Candidate(text, float(probabilities[index])) for text, index in texts.items())


def _classes(encoder: TaskEncoder, task_head: str, logits: Tensor) -> ClassPrediction:
    names: tuple[str, ...] = CLASS_NAMES.get(task_head) or encoder.labels
    if len(logits) == 1:
        return ClassPrediction(task_head, (), float(logits[0]))
    probabilities = logits.softmax(-1).tolist()
    named = [
        Candidate(str(names[index]) if index < len(names) else str(index), probability)
        for index, probability in enumerate(probabilities)
    ]
    return ClassPrediction(task_head, tuple(named))


def _tags(
    encoder: TaskEncoder, tokens: TokenisedInput, rows: Mapping[str, Tensor], positions: Sequence[int]
) -> tuple[TokenPrediction, ...]:
    if "replaced" in rows:
        p_replaced = torch.sigmoid(rows["replaced"]).tolist()
        return tuple(TokenPrediction(i, tokens.tokens[i], (Candidate("replaced", p_replaced[i]),)) for i in positions)
    if "token" not in rows:
        return ()
    probabilities = rows["token"].softmax(-1)
    predictions: list[TokenPrediction] = []
    for index in positions:
        order = probabilities[index].argsort(descending=True).tolist()
        candidates = tuple(Candidate(encoder.labels[tag], float(probabilities[index, tag])) for tag in order)
        predictions.append(TokenPrediction(index, tokens.tokens[index], candidates))
    return tuple(predictions)


def _answers(tokens: TokenisedInput, rows: Mapping[str, Tensor], n: int) -> tuple[AnswerPrediction, ...]:
    """The most probable spans of the second segment, or of the only one."""
    segment = 1 if bool((tokens.segment_ids == 1).any()) else 0
    allowed = torch.from_numpy((tokens.segment_ids == segment).copy())
    start, end = (rows[name].softmax(-1) for name in ("answer_start", "answer_end"))
    products = start[:, None] * end[None, :]
    spans = torch.ones_like(products, dtype=torch.bool).triu().tril(MAX_ANSWER_TOKENS - 1)
    products = products.masked_fill(~(spans & allowed[:, None] & allowed[None, :]), 0.0)
    best = torch.topk(products.flatten(), min(n, products.numel()))
    answers: list[AnswerPrediction] = []
    for probability, index in zip(best.values.tolist(), best.indices.tolist(), strict=True):
        first, last = divmod(index, products.shape[1])
        if probability > 0:
            answers.append(AnswerPrediction(first, last, " ".join(tokens.tokens[first : last + 1]), probability))
    return tuple(answers)
