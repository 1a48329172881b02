"""`choice`: the right one of several options, each read after the passage and the question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor, nn

from bertology.corpus.corpus import Item
from bertology.encoder.encoder import Output
from bertology.encoder.pieces import Pieces
from bertology.encoder.task_heads import HeadName
from bertology.finetuning.examples import Example, Ints, Padded, Seen, Tokenise, stacked, whole
from bertology.finetuning.learner import Learner
from bertology.finetuning.metrics import Counts, Scores, estimate


@dataclass(frozen=True)
class Choices:
    """The number of the right option."""

    labels: tuple[str, ...] = ()
    name: str = "choice"
    head: HeadName = "choice"
    measure: str = "accuracy"

    def see(self, items: Sequence[Item], tokenise: Tokenise, *, longest: int) -> Seen:
        """A passage that is too long loses its end; an item without room for any of it is left out."""
        kept: list[Item] = []
        examples: list[Example] = []
        cut = 0
        for item in items:
            rows = [_shortened(pieces, longest) for pieces in tokenise(item.inputs)]
            cut += any(short for _, _, short in rows)
            if any(not len(ids) for ids, _, _ in rows):
                continue
            ids, types = stacked([ids for ids, _, _ in rows]), stacked([types for _, types, _ in rows])
            examples.append(Example(ids, types, np.array([int(item.label or 0)]), item=len(kept)))
            kept.append(item)
        return Seen(kept, examples, cut)

    def loss(self, learner: Learner, batch: Padded) -> Tensor:
        """Cross-entropy of the right option."""
        return self.losses(learner.run(batch.shown), batch).mean()

    def losses(self, output: Output, batch: Padded) -> Tensor:
        """Cross-entropy of the right option of each item."""
        logits = _options(output, batch)
        return nn.functional.cross_entropy(logits, batch.labels[:, 0].to(logits.device), reduction="none")

    def answers(self, learner: Learner, seen: Seen) -> list[int]:
        """The likeliest option."""
        return self.read(learner.shown(seen.examples), seen)

    def read(self, shown: Iterable[tuple[Padded, Output]], seen: Seen) -> list[int]:
        """The likeliest option, from what came of each item."""
        found = [0] * len(seen.items)
        for batch, output in shown:
            for place, answer in zip(batch.places, _options(output, batch).argmax(-1).tolist(), strict=True):
                found[place] = answer
        return found

    def counts(self, items: Sequence[Item], answers: Sequence[int]) -> Counts:
        """1 for each right option."""
        right = [float(str(answer) == item.label) for item, answer in zip(items, answers, strict=True)]
        return Counts(np.array(right), np.ones(len(right)))

    def scores(self, items: Sequence[Item], answers: Sequence[int]) -> Scores:
        """The share of right options."""
        return {"accuracy": estimate(self.counts(items, answers))}

    def guesses(self, learnt: Sequence[Item], items: Sequence[Item]) -> Mapping[str, list[int]]:
        """The place that is right most often."""
        usual = Counter(int(item.label or 0) for item in learnt).most_common(1)[0][0]
        return {"majority": [usual] * len(items)}


def _options(output: Output, batch: Padded) -> Tensor:
    """(item, option) the score of each option; -inf where an item has no such option."""
    logits = output.logits["choice"].float().reshape(batch.shown.ids.shape[:2])
    return logits.masked_fill(batch.shown.mask[..., 0].to(logits.device) == 0, float("-inf"))


def _shortened(pieces: Pieces, longest: int) -> tuple[Ints, Ints, bool]:
    """The pieces without the end of the passage, as far as it is too long; nothing where that is not enough."""
    ids, types = whole(pieces)
    over = len(ids) - longest
    if over <= 0:
        return ids, types, False
    passage = np.flatnonzero(pieces.part == 0)
    if over >= len(passage):
        return ids[:0], types[:0], True
    dropped = passage[len(passage) - over :]
    return np.delete(ids, dropped), np.delete(types, dropped), True
