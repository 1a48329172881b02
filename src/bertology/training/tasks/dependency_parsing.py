"""Task `dependency`: governor and relation of each word, by a biaffine parser over the first tokens of words.

See Dozat and Manning (2017). The first special token stands for the root. Arcs form the maximum spanning tree with one
root. All words are scored, punctuation included, as in the CoNLL shared tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bertology.arrays import IntArray
from bertology.corpus.example import Example
from bertology.corpus.sentence import ROOT
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.estimates.metrics import Counts, MetricEstimates, bootstrap_score
from bertology.lazy import torch
from bertology.training.chu_liu_edmonds import max_spanning_tree
from bertology.training.encoded_examples import (
    IGNORE_INDEX,
    EncodedDataset,
    EncodedExample,
    TokeniseFunction,
    TrainingBatch,
    first_tokens,
    ids_and_types,
)
from bertology.training.tasks.task import MAJORITY_CLASS
from bertology.training.trainable_model import TrainableModel

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.task_heads import TaskHeadName
    from bertology.training.biaffine_parser import BiaffineParser

ParsedArcs = Sequence[tuple[int, str]]
"""Governor and relation of each word."""


@dataclass(frozen=True)
class DependencyParsing:
    """A dependency tree over the words of each sentence."""

    labels: tuple[str, ...]
    name: str = "dependency"
    task_head: TaskHeadName = "none"
    metric: str = "LAS"

    def encode(self, examples: Sequence[Example], tokenise: TokeniseFunction, *, max_length: int) -> EncodedDataset:
        """Sentences that are too long, or have a word without tokens, are skipped."""
        label_ids = {label: index for index, label in enumerate(self.labels)}
        used: list[Example] = []
        encoded: list[EncodedExample] = []
        for example, tokens in zip(examples, tokenise([example.text_inputs[0] for example in examples]), strict=True):
            if len(tokens) > max_length or tokens.dropped_words:
                continue
            if tokens.special_kinds[0] == SpecialToken.NONE:
                raise Refusal(
                    "The model's tokeniser puts no special token before a sentence, to stand for the root",
                    "a first token such as [CLS]",
                    "Choose another model for this task",
                )
            word_ids = np.asarray(tokens.word_ids, np.int64)
            first = first_tokens(word_ids)
            labels = np.full((2, len(tokens)), IGNORE_INDEX)
            for position, (governor, relation) in zip(first, _gold_arcs(example), strict=True):
                labels[:, position] = 0 if governor == ROOT else first[governor], label_ids.get(relation, IGNORE_INDEX)
            encoded.append(EncodedExample(*ids_and_types(tokens), labels, example_index=len(used), word_ids=word_ids))
            used.append(example)
        return EncodedDataset(used, encoded, len(examples) - len(used))

    def loss(self, model: TrainableModel, batch: TrainingBatch) -> Tensor:
        """Mean cross-entropy of the governors plus that of the relations to them."""
        parser, states = _require_parser(model), model.forward(batch.inputs, hidden=True).hidden_states[-1]
        governors, relations = batch.labels.to(states.device).unbind(1)
        arc_scores = parser.score_arcs(states, _candidate_mask(governors)).flatten(0, 1)
        relation_scores = parser.score_relations(states, governors.clamp(min=0)).flatten(0, 1)
        has_governor = governors.flatten() != IGNORE_INDEX
        cross_entropy = torch.nn.functional.cross_entropy
        return cross_entropy(arc_scores[has_governor], governors.flatten()[has_governor]) + cross_entropy(
            relation_scores, relations.flatten(), ignore_index=IGNORE_INDEX
        )

    def predict(self, model: TrainableModel, dataset: EncodedDataset) -> list[ParsedArcs]:
        """The maximum spanning tree, with the most probable relation of each arc."""
        parser = _require_parser(model)
        predictions: list[ParsedArcs] = [()] * len(dataset.examples)
        for batch, output in model.predict_batches(dataset.encoded, hidden=True):
            states = output.hidden_states[-1]
            labels = batch.labels[:, 0].to(states.device)
            with torch.no_grad():
                arcs = parser.score_arcs(states, _candidate_mask(labels)).log_softmax(-1).cpu().numpy()
                governors, trees = torch.zeros_like(labels), list[IntArray]()
                for row, index in enumerate(batch.indices):
                    first = dataset.encoded[index].first_tokens
                    columns = np.append(0, first)
                    trees.append(max_spanning_tree(arcs[row][np.ix_(first, columns)]))
                    governors[row, torch.from_numpy(first)] = torch.from_numpy(columns[trees[-1]]).to(governors.device)
                relation_ids = parser.score_relations(states, governors).argmax(-1).cpu().numpy()
            for row, index in enumerate(batch.indices):
                relations = relation_ids[row, dataset.encoded[index].first_tokens]
                predictions[index] = [
                    (int(governor) - 1, self.labels[relation])
                    for governor, relation in zip(trees[row], relations, strict=True)
                ]
        return predictions

    def count_correct(self, examples: Sequence[Example], predictions: Sequence[ParsedArcs]) -> Counts:
        """Words with the correct governor and relation."""
        return _count_correct_arcs(examples, predictions, labelled=True)

    def metrics(self, examples: Sequence[Example], predictions: Sequence[ParsedArcs]) -> MetricEstimates:
        """Unlabelled and labelled attachment scores: words with the correct governor, and relation to it."""
        return {
            name: bootstrap_score(_count_correct_arcs(examples, predictions, labelled=name == "LAS"))
            for name in ("UAS", "LAS")
        }

    def baseline_predictions(
        self, train_examples: Sequence[Example], examples: Sequence[Example]
    ) -> Mapping[str, list[ParsedArcs]]:
        """The most frequent offset from word to governor, with the most frequent relation at that offset."""
        arcs = [
            (governor - word, relation)
            for example in train_examples
            for word, (governor, relation) in enumerate(_gold_arcs(example))
            if governor != ROOT
        ]
        offset = Counter(offset for offset, _ in arcs).most_common(1)[0][0] if arcs else 1
        at_offset = Counter(relation for arc_offset, relation in arcs if arc_offset == offset).most_common(1)
        relation = at_offset[0][0] if at_offset else self.labels[0]
        return {MAJORITY_CLASS: [_offset_arcs(len(example.segments[0]), offset, relation) for example in examples]}


def _gold_arcs(example: Example) -> list[tuple[int, str]]:
    sentence = example.segments[0]
    return list(zip(sentence.governors or (), sentence.relations or (), strict=True))


def _offset_arcs(n_words: int, offset: int, relation: str) -> ParsedArcs:
    governors = [word + offset for word in range(n_words)]
    return [(governor, relation) if 0 <= governor < n_words else (ROOT, "root") for governor in governors]


def _count_correct_arcs(examples: Sequence[Example], predictions: Sequence[ParsedArcs], *, labelled: bool) -> Counts:
    correct: list[float] = []
    for example, predicted_arcs in zip(examples, predictions, strict=True):
        pairs = zip(_gold_arcs(example), predicted_arcs, strict=True)
        correct.append(sum(gold == predicted if labelled else gold[0] == predicted[0] for gold, predicted in pairs))
    total = [len(example.segments[0]) for example in examples]
    return Counts(np.array(correct, np.float64), np.array(total, np.float64))


def _candidate_mask(governors: Tensor) -> Tensor:
    """True for the first tokens of words, and for the root."""
    mask = governors != IGNORE_INDEX
    mask[:, 0] = True
    return mask


def _require_parser(model: TrainableModel) -> BiaffineParser:
    assert model.parser is not None, "a model for dependency parsing has a parser"
    return model.parser
