"""Task `qa`: extractive question answering, with or without unanswerable questions (Rajpurkar et al. 2016, 2018).

A passage too long for the model is read in windows that overlap by half. A window without the answer is trained to
point at the first token, which also stands for "no answer".
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bertology.arrays import Array, IntArray
from bertology.corpus.example import Example
from bertology.corpus.sentence import Span
from bertology.encoder.encoder import ModelOutput
from bertology.encoder.tokens import TokenisedInput, span_tokens
from bertology.estimates.metrics import Counts, MetricEstimates, bootstrap_score
from bertology.lazy import torch
from bertology.training.encoded_examples import (
    EncodedDataset,
    EncodedExample,
    TokeniseFunction,
    TrainingBatch,
    ids_and_types,
)
from bertology.training.tasks.task import MAJORITY_CLASS
from bertology.training.trainable_model import TrainableModel

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.task_heads import TaskHeadName

MAX_ANSWER_TOKENS = 30
MIN_PASSAGE_TOKENS = 8

AnswerSpan = Span | None
"""Words of the passage; None: no answer."""


@dataclass(frozen=True)
class QuestionAnswering:
    """A span of words of the passage; None is predicted only if `allow_no_answer`."""

    allow_no_answer: bool
    labels: tuple[str, ...] = ()
    name: str = "qa"
    task_head: TaskHeadName = "answer"
    metric: str = "F1"

    def encode(self, examples: Sequence[Example], tokenise: TokeniseFunction, *, max_length: int) -> EncodedDataset:
        """Encode all windows of all passages; a question without room for a passage is skipped."""
        used: list[Example] = []
        encoded: list[EncodedExample] = []
        n_truncated = 0
        for example, tokens in zip(examples, tokenise([example.text_inputs[0] for example in examples]), strict=True):
            windows = list(_windows(tokens, max_length))
            n_truncated += len(windows) != 1
            for positions in windows:
                ids, types = (array[positions] for array in ids_and_types(tokens))
                is_passage = tokens.segment_ids[positions] == 1
                word_ids = np.where(is_passage, tokens.word_ids[positions] - len(example.segments[0]), -1)
                word_ids = np.maximum(word_ids.astype(np.int64), -1)
                target = _target_positions(example, word_ids)
                encoded.append(EncodedExample(ids, types, target, example_index=len(used), word_ids=word_ids))
            if windows:
                used.append(example)
        return EncodedDataset(used, encoded, n_truncated)

    def loss(self, model: TrainableModel, batch: TrainingBatch) -> Tensor:
        """Mean cross-entropy of the first and the last token of the answer."""
        return self.example_losses(model.forward(batch.inputs), batch).mean()

    def example_losses(self, output: ModelOutput, batch: TrainingBatch) -> Tensor:
        """Mean cross-entropy of the first and the last token of the answer in each window."""
        losses: list[Tensor] = []
        for column, name in enumerate(("answer_start", "answer_end")):
            logits = output.logits[name].float()
            logits = logits.masked_fill(batch.inputs.attention_mask.to(logits.device) == 0, float("-inf"))
            labels = batch.labels[:, column].to(logits.device)
            losses.append(torch.nn.functional.cross_entropy(logits, labels, reduction="none"))
        return (losses[0] + losses[1]) / 2

    def predict(self, model: TrainableModel, dataset: EncodedDataset) -> list[AnswerSpan]:
        """The best span over all windows; None if the first token scores higher in every window."""
        return self.decode(model.predict_batches(dataset.encoded), dataset)

    def decode(self, outputs: Iterable[tuple[TrainingBatch, ModelOutput]], dataset: EncodedDataset) -> list[AnswerSpan]:
        """The best span over all windows; None if the first token scores higher in every window."""
        best: list[tuple[float, AnswerSpan]] = [(-np.inf, None)] * len(dataset.examples)
        no_answer = np.full(len(dataset.examples), np.inf)
        for batch, output in outputs:
            start, end = (output.logits[name].float().cpu().numpy() for name in ("answer_start", "answer_end"))
            for row, index in enumerate(batch.indices):
                window = dataset.encoded[index]
                example = window.example_index
                candidate = _best_span(start[row, : len(window)], end[row, : len(window)], window.word_ids)
                best[example] = max(best[example], candidate, key=lambda scored: scored[0])
                no_answer[example] = min(no_answer[example], float(start[row, 0] + end[row, 0]))
        return [
            None if self.allow_no_answer and no_answer_score > score else span
            for (score, span), no_answer_score in zip(best, no_answer, strict=True)
        ]

    def count_correct(self, examples: Sequence[Example], predictions: Sequence[AnswerSpan]) -> Counts:
        """Token F1 of each prediction with the most similar gold answer."""
        overlaps = [
            max(_token_f1(gold, predicted) for gold in golds)
            for golds, predicted in _normalised_answers(examples, predictions)
        ]
        return Counts(np.array(overlaps), np.ones(len(overlaps)))

    def metrics(self, examples: Sequence[Example], predictions: Sequence[AnswerSpan]) -> MetricEstimates:
        """Exact match and token F1, without articles and punctuation, against the most similar gold answer."""
        exact = np.array([float(predicted in golds) for golds, predicted in _normalised_answers(examples, predictions)])
        return {
            "F1": bootstrap_score(self.count_correct(examples, predictions)),
            "exact match": bootstrap_score(Counts(exact, np.ones(len(exact)))),
        }

    def baseline_predictions(
        self, train_examples: Sequence[Example], examples: Sequence[Example]
    ) -> Mapping[str, list[AnswerSpan]]:
        """The first words of the passage, of median answer length; no answer if most training questions have none."""
        lengths = [
            span.end - span.start for example in train_examples for span in (example.segments[1].answer_spans or ())[:1]
        ]
        if len(lengths) * 2 < len(train_examples):
            return {MAJORITY_CLASS: [None] * len(examples)}
        median_length = int(np.median(lengths))
        return {"first words": [Span(0, min(median_length, len(example.segments[1]))) for example in examples]}


def _windows(tokens: TokenisedInput, max_length: int) -> Iterator[IntArray]:
    """Token positions of each window: the question, part of the passage, and the closing special token."""
    passage = np.flatnonzero(tokens.segment_ids == 1)
    if not len(passage):
        return
    before, after = np.arange(passage[0]), np.arange(passage[-1] + 1, len(tokens))
    available = max_length - len(before) - len(after)
    if available < min(MIN_PASSAGE_TOKENS, len(passage)):
        return
    start = 0
    while True:
        yield np.concatenate([before, passage[start : start + available], after])
        if start + available >= len(passage):
            return
        start += max(1, available // 2)


def _target_positions(example: Example, word_ids: IntArray) -> IntArray:
    """Positions of the first and last token of the first answer; 0 and 0 if the window does not contain all of it."""
    for span in (example.segments[1].answer_spans or ())[:1]:
        positions = span_tokens(word_ids, span.start, span.end)
        if positions is not None:
            return positions
    return np.zeros(2, np.int64)


def _best_span(start: Array, end: Array, word_ids: IntArray) -> tuple[float, AnswerSpan]:
    """The span of words with the highest sum of start and end logits, and that sum."""
    inside = np.flatnonzero(word_ids >= 0)
    if not len(inside):
        return -np.inf, None
    sums = start[inside][:, None] + end[inside][None, :]
    length = inside[None, :] - inside[:, None]
    sums = np.where((length >= 0) & (length < MAX_ANSWER_TOKENS), sums, -np.inf)
    first, last = np.unravel_index(int(sums.argmax()), sums.shape)
    return float(sums[first, last]), Span(int(word_ids[inside[first]]), int(word_ids[inside[last]]) + 1)


def _normalised_answers(
    examples: Sequence[Example], predictions: Sequence[AnswerSpan]
) -> Iterator[tuple[list[tuple[str, ...]], tuple[str, ...]]]:
    """Normalised words of the gold answers and of the prediction; no words for "no answer"."""
    for example, predicted in zip(examples, predictions, strict=True):
        golds = [_normalise_answer(example, span) for span in example.segments[1].answer_spans or ()] or [()]
        yield golds, _normalise_answer(example, predicted) if predicted is not None else ()


def _normalise_answer(example: Example, span: Span) -> tuple[str, ...]:
    """The words of an answer as SQuAD's script compares them: lower case, no punctuation, no articles."""
    passage = example.segments[1]
    text = passage.text[passage.offsets[span.start][0] : passage.offsets[span.end - 1][1]].lower()
    text = "".join(letter for letter in text if letter not in string.punctuation)
    return tuple(re.sub(r"\b(a|an|the)\b", " ", text).split())


def _token_f1(gold: tuple[str, ...], predicted: tuple[str, ...]) -> float:
    if not gold or not predicted:
        return float(gold == predicted)
    common = sum((Counter(gold) & Counter(predicted)).values())
    return 2 * common / (len(gold) + len(predicted))
