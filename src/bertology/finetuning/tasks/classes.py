"""`sentence` and `pair`: one class for a text, or for two texts together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor, nn

from bertology.corpus.corpus import Item
from bertology.encoder.encoder import Output
from bertology.encoder.task_heads import HeadName
from bertology.finetuning.examples import UNLABELLED, Padded, Seen, Tokenise, classified
from bertology.finetuning.learner import Learner
from bertology.finetuning.metrics import Counts, Scores, count_same, estimate, macro_f1_and_mcc


@dataclass(frozen=True)
class Classes:
    """A class for each item, by the model's head on the first piece."""

    name: str
    labels: tuple[str, ...]
    head: HeadName = "label"
    measure: str = "accuracy"

    def see(self, items: Sequence[Item], tokenise: Tokenise, *, longest: int) -> Seen:
        """A text that is too long keeps its end; a pair that is too long is left out."""
        return classified(items, tokenise, self.labels, longest=longest)

    def loss(self, learner: Learner, batch: Padded) -> Tensor:
        """Cross-entropy of the class."""
        logits = learner.run(batch.shown).logits["label"].float()
        return nn.functional.cross_entropy(logits, batch.labels[:, 0].to(logits.device), ignore_index=UNLABELLED)

    def losses(self, output: Output, batch: Padded) -> Tensor:
        """Cross-entropy of the class of each item."""
        logits = output.logits["label"].float()
        labels = batch.labels[:, 0].to(logits.device)
        return nn.functional.cross_entropy(logits, labels, ignore_index=UNLABELLED, reduction="none")

    def answers(self, learner: Learner, seen: Seen) -> list[str]:
        """The likeliest class."""
        return self.read(learner.shown(seen.examples), seen)

    def read(self, shown: Iterable[tuple[Padded, Output]], seen: Seen) -> list[str]:
        """The likeliest class, from what came of each item."""
        found = [""] * len(seen.items)
        for batch, output in shown:
            for place, answer in zip(batch.places, output.logits["label"].argmax(-1).tolist(), strict=True):
                found[place] = self.labels[answer]
        return found

    def counts(self, items: Sequence[Item], answers: Sequence[str]) -> Counts:
        """1 for each right class."""
        right = [float(answer == item.label) for item, answer in zip(items, answers, strict=True)]
        return Counts(np.array(right), np.ones(len(right)))

    def scores(self, items: Sequence[Item], answers: Sequence[str]) -> Scores:
        """Accuracy, macro-F1 and Matthews' correlation."""
        gold, given = [[str(item.label)] for item in items], [[answer] for answer in answers]
        return {"accuracy": estimate(count_same(gold, given)), **macro_f1_and_mcc(gold, given)}

    def guesses(self, learnt: Sequence[Item], items: Sequence[Item]) -> Mapping[str, list[str]]:
        """The commonest class of those learnt from."""
        usual = Counter(str(item.label) for item in learnt).most_common(1)[0][0]
        return {"majority": [usual] * len(items)}
