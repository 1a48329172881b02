"""Task `token`: one tag per word, predicted at its first token; BIO tags are scored as spans."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bertology.corpus.bio import decode, is_tag
from bertology.corpus.example import Example
from bertology.encoder.encoder import ModelOutput
from bertology.estimates.metrics import (
    Counts,
    MetricEstimates,
    bootstrap_score,
    count_correct_labels,
    macro_f1_and_mcc,
)
from bertology.lazy import torch
from bertology.training.encoded_examples import (
    IGNORE_INDEX,
    EncodedDataset,
    TokeniseFunction,
    TrainingBatch,
    encode_tagging,
)
from bertology.training.tasks.task import MAJORITY_CLASS
from bertology.training.trainable_model import TrainableModel

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.task_heads import TaskHeadName

TagSequence = Sequence[str]


@dataclass(frozen=True)
class TokenClassification:
    """One tag per word, from an annotation of the sentence."""

    labels: tuple[str, ...]
    annotation: str
    name: str = "token"
    task_head: TaskHeadName = "token"

    @property
    def marks_spans(self) -> bool:
        """Whether the tags are BIO tags: O, and B- or I- before a label."""
        return "O" in self.labels and len(self.labels) > 1 and all(map(is_tag, self.labels))

    @property
    def metric(self) -> str:
        """Metric that selects the best epoch."""
        return "span F1" if self.marks_spans else "accuracy"

    def encode(self, examples: Sequence[Example], tokenise: TokeniseFunction, *, max_length: int) -> EncodedDataset:
        """Sentences that are too long, or have a word without tokens, are skipped."""
        return encode_tagging(examples, tokenise, self.labels, max_length=max_length, annotation=self.annotation)

    def loss(self, model: TrainableModel, batch: TrainingBatch) -> Tensor:
        """Mean cross-entropy of the tags at the first tokens."""
        logits = model.forward(batch.inputs).logits["token"].float()
        labels = batch.labels.to(logits.device)
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORE_INDEX)

    def example_losses(self, output: ModelOutput, batch: TrainingBatch) -> Tensor:
        """Mean cross-entropy of the tags of each sentence; 0 for a sentence without labels."""
        logits = output.logits["token"].float()
        labels = batch.labels.to(logits.device)
        losses = torch.nn.functional.cross_entropy(
            logits.transpose(1, 2), labels, ignore_index=IGNORE_INDEX, reduction="none"
        )
        return losses.sum(1) / (labels != IGNORE_INDEX).sum(1).clamp(min=1)

    def predict(self, model: TrainableModel, dataset: EncodedDataset) -> list[TagSequence]:
        """The most probable tag of each word."""
        return self.decode(model.predict_batches(dataset.encoded), dataset)

    def decode(
        self, outputs: Iterable[tuple[TrainingBatch, ModelOutput]], dataset: EncodedDataset
    ) -> list[TagSequence]:
        """The most probable tag of each word."""
        predictions: list[TagSequence] = [()] * len(dataset.examples)
        for batch, output in outputs:
            tags = output.logits["token"].argmax(-1).cpu().numpy()
            for row, index in enumerate(batch.indices):
                predictions[index] = [self.labels[tag] for tag in tags[row, dataset.encoded[index].first_tokens]]
        return predictions

    def count_correct(self, examples: Sequence[Example], predictions: Sequence[TagSequence]) -> Counts:
        """Correct spans, or correct tags."""
        count = count_correct_spans if self.marks_spans else count_correct_labels
        return count(self._gold_tags(examples), predictions)

    def metrics(self, examples: Sequence[Example], predictions: Sequence[TagSequence]) -> MetricEstimates:
        """F1 of spans if the tags mark spans; accuracy over all words and macro F1 of the tags."""
        gold = self._gold_tags(examples)
        metrics: MetricEstimates = {}
        if self.marks_spans:
            metrics["span F1"] = bootstrap_score(count_correct_spans(gold, predictions))
        metrics["accuracy"] = bootstrap_score(count_correct_labels(gold, predictions))
        return metrics | macro_f1_and_mcc(gold, predictions)

    def baseline_predictions(
        self, train_examples: Sequence[Example], examples: Sequence[Example]
    ) -> Mapping[str, list[TagSequence]]:
        """The most frequent tag of all words, and of each word, in the training examples."""
        majority = Counter(tag for tags in self._gold_tags(train_examples) for tag in tags).most_common(1)[0][0]
        tags_by_word: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for example, tags in zip(train_examples, self._gold_tags(train_examples), strict=True):
            for word, tag in zip(example.segments[0].words, tags, strict=True):
                tags_by_word[word.lower()][tag] += 1
        tag_of_word = {word: tags.most_common(1)[0][0] for word, tags in tags_by_word.items()}
        sentences = [example.segments[0].words for example in examples]
        return {
            MAJORITY_CLASS: [[majority] * len(words) for words in sentences],
            "most frequent label of the word": [
                [tag_of_word.get(word.lower(), majority) for word in words] for words in sentences
            ],
        }

    def _gold_tags(self, examples: Sequence[Example]) -> list[TagSequence]:
        return [getattr(example.segments[0], self.annotation) for example in examples]


def sort_tags(tags: set[str]) -> tuple[str, ...]:
    """The tags in alphabetical order, O first."""
    return tuple(sorted(tags, key=lambda tag: (tag != "O", tag)))


def count_correct_spans(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> Counts:
    """Counts of entity spans in BIO tags; an I without a preceding tag begins a span, as in the CoNLL script."""
    correct: list[float] = []
    total: list[float] = []
    for gold_tags, predicted_tags in zip(gold, predicted, strict=True):
        gold_spans, predicted_spans = (set(decode(tags, scheme="iob1")) for tags in (gold_tags, predicted_tags))
        correct.append(2.0 * len(gold_spans & predicted_spans))
        total.append(float(len(gold_spans) + len(predicted_spans)))
    return Counts(np.array(correct), np.array(total))
