"""`qa`: the words of a passage that answer a question, or that there are none (rajpurkar2016, rajpurkar2018).

A passage too long for the model is read in windows that overlap by half. A window without the answer is taught, and
asked, to point at the first piece, which also stands for "no answer".
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from bertology.corpus.corpus import Item
from bertology.corpus.sentence import Span
from bertology.encoder.encoder import Output
from bertology.encoder.pieces import Pieces, ends_of
from bertology.encoder.task_heads import HeadName
from bertology.finetuning.examples import Example, Ints, Padded, Seen, Tokenise, whole
from bertology.finetuning.learner import Learner
from bertology.finetuning.metrics import Counts, Scores, estimate

LONGEST_ANSWER = 30
LEAST_ROOM = 8

Answer = Span | None


@dataclass(frozen=True)
class Answers:
    """A span of words of the passage; None where the question has no answer, if `may_lack` one."""

    may_lack: bool
    labels: tuple[str, ...] = ()
    name: str = "qa"
    head: HeadName = "answer"
    measure: str = "F1"

    def see(self, items: Sequence[Item], tokenise: Tokenise, *, longest: int) -> Seen:
        """Every window of every passage; a question without room for a passage is left out."""
        kept: list[Item] = []
        examples: list[Example] = []
        cut = 0
        for item, pieces in zip(items, tokenise([item.inputs[0] for item in items]), strict=True):
            windows = list(_windows(pieces, longest))
            cut += len(windows) != 1
            for places in windows:
                ids, types = (array[places] for array in whole(pieces))
                word = np.where(pieces.part[places] == 1, pieces.word[places] - len(item.parts[0]), -1).astype(np.int64)
                examples.append(Example(ids, types, _target(item, word), item=len(kept), word=np.maximum(word, -1)))
            if windows:
                kept.append(item)
        return Seen(kept, examples, cut)

    def loss(self, learner: Learner, batch: Padded) -> Tensor:
        """The mean of the cross-entropies of the first and of the last piece."""
        return self.losses(learner.run(batch.shown), batch).mean()

    def losses(self, output: Output, batch: Padded) -> Tensor:
        """The mean of the cross-entropies of the first and of the last piece of each window."""
        both: list[Tensor] = []
        for column, name in enumerate(("answer_start", "answer_end")):
            logits = _real(output.logits[name], batch)
            labels = batch.labels[:, column].to(logits.device)
            both.append(nn.functional.cross_entropy(logits, labels, reduction="none"))
        return (both[0] + both[1]) / 2

    def answers(self, learner: Learner, seen: Seen) -> list[Answer]:
        """The best span over all windows; none where pointing at the first piece is better in every window."""
        return self.read(learner.shown(seen.examples), seen)

    def read(self, shown: Iterable[tuple[Padded, Output]], seen: Seen) -> list[Answer]:
        """The best span over all windows, from what came of each."""
        best: list[tuple[float, Answer]] = [(-np.inf, None)] * len(seen.items)
        lacking = np.full(len(seen.items), np.inf)
        for batch, output in shown:
            start, end = (output.logits[name].float().cpu().numpy() for name in ("answer_start", "answer_end"))
            for row, place in enumerate(batch.places):
                example = seen.examples[place]
                found = _best_span(start[row, : len(example)], end[row, : len(example)], example.word)
                best[example.item] = max(best[example.item], found, key=lambda pair: pair[0])
                lacking[example.item] = min(lacking[example.item], float(start[row, 0] + end[row, 0]))
        return [
            None if self.may_lack and none > score else span for (score, span), none in zip(best, lacking, strict=True)
        ]

    def counts(self, items: Sequence[Item], answers: Sequence[Answer]) -> Counts:
        """The overlap of each answer with the gold one nearest to it."""
        overlaps = [max(_overlap(gold, given) for gold in golds) for golds, given in _texts(items, answers)]
        return Counts(np.array(overlaps), np.ones(len(overlaps)))

    def scores(self, items: Sequence[Item], answers: Sequence[Answer]) -> Scores:
        """Exact match and F1 of words, without articles and punctuation, against the nearest gold answer."""
        same = np.array([float(given in golds) for golds, given in _texts(items, answers)])
        return {
            "F1": estimate(self.counts(items, answers)),
            "exact match": estimate(Counts(same, np.ones(len(same)))),
        }

    def guesses(self, learnt: Sequence[Item], items: Sequence[Item]) -> Mapping[str, list[Answer]]:
        """The first words of the passage, as many as answers usually have; none where most questions have none."""
        lengths = [span.end - span.start for item in learnt for span in (item.parts[1].answers or ())[:1]]
        if len(lengths) * 2 < len(learnt):
            return {"majority": [None] * len(items)}
        usual = int(np.median(lengths))
        return {"first words": [Span(0, min(usual, len(item.parts[1]))) for item in items]}


def _windows(pieces: Pieces, longest: int) -> Iterator[Ints]:
    """The places of the pieces of each window: the question, a stretch of the passage, and what closes it."""
    passage = np.flatnonzero(pieces.part == 1)
    if not len(passage):
        return
    before, after = np.arange(passage[0]), np.arange(passage[-1] + 1, len(pieces))
    room = longest - len(before) - len(after)
    if room < min(LEAST_ROOM, len(passage)):
        return
    start = 0
    while True:
        yield np.concatenate([before, passage[start : start + room], after])
        if start + room >= len(passage):
            return
        start += max(1, room // 2)


def _target(item: Item, word: Ints) -> Ints:
    """The places of the first and last piece of the first answer; 0 and 0 where the window does not have it whole."""
    for span in (item.parts[1].answers or ())[:1]:
        found = ends_of(word, span.start, span.end)
        if found is not None:
            return found
    return np.zeros(2, np.int64)


def _real(logits: Tensor, batch: Padded) -> Tensor:
    return logits.float().masked_fill(batch.shown.mask.to(logits.device) == 0, float("-inf"))


def _best_span(start: NDArray[np.float32], end: NDArray[np.float32], word: Ints) -> tuple[float, Answer]:
    inside = np.flatnonzero(word >= 0)
    if not len(inside):
        return -np.inf, None
    sums = start[inside][:, None] + end[inside][None, :]
    apart = inside[None, :] - inside[:, None]
    sums = np.where((apart >= 0) & (apart < LONGEST_ANSWER), sums, -np.inf)
    first, last = np.unravel_index(int(sums.argmax()), sums.shape)
    return float(sums[first, last]), Span(int(word[inside[first]]), int(word[inside[last]]) + 1)


def _texts(items: Sequence[Item], answers: Sequence[Answer]) -> Iterator[tuple[list[tuple[str, ...]], tuple[str, ...]]]:
    """The plain words of the gold answers and of the one given; no words for "no answer"."""
    for item, answer in zip(items, answers, strict=True):
        golds = [_plain(item, span) for span in item.parts[1].answers or ()] or [()]
        yield golds, _plain(item, answer) if answer is not None else ()


def _plain(item: Item, span: Span) -> tuple[str, ...]:
    """The words of an answer as SQuAD's script compares them: lower case, no punctuation, no articles."""
    part = item.parts[1]
    text = part.text[part.offsets[span.start][0] : part.offsets[span.end - 1][1]].lower()
    text = "".join(letter for letter in text if letter not in string.punctuation)
    return tuple(re.sub(r"\b(a|an|the)\b", " ", text).split())


def _overlap(gold: tuple[str, ...], given: tuple[str, ...]) -> float:
    if not gold or not given:
        return float(gold == given)
    common = sum((Counter(gold) & Counter(given)).values())
    return 2 * common / (len(gold) + len(given))
