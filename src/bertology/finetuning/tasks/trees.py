"""`dependency`: the head and relation of each word, by a biaffine parser over its first piece (dozat2017).

The root is the first special piece. The arcs are the tree of the highest score with one root. All words count,
punctuation too, as in the CoNLL shared tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from bertology.corpus.corpus import Item
from bertology.corpus.sentence import ROOT
from bertology.encoder.pieces import Special
from bertology.encoder.task_heads import HeadName
from bertology.errors import Refusal
from bertology.finetuning.examples import UNLABELLED, Example, Padded, Seen, Tokenise, first_pieces, whole
from bertology.finetuning.learner import Learner
from bertology.finetuning.metrics import Counts, Scores, estimate
from bertology.finetuning.parser import Parser
from bertology.maths.arborescence import best_heads

Answer = Sequence[tuple[int, str]]
"""The head and the relation of each word."""


@dataclass(frozen=True)
class Trees:
    """A tree over the words of each sentence."""

    labels: tuple[str, ...]
    name: str = "dependency"
    head: HeadName = "none"
    measure: str = "LAS"

    def see(self, items: Sequence[Item], tokenise: Tokenise, *, longest: int) -> Seen:
        """Sentences that are too long, or have a word that the tokeniser drops, are left out."""
        known = {label: place for place, label in enumerate(self.labels)}
        kept: list[Item] = []
        examples: list[Example] = []
        for item, pieces in zip(items, tokenise([item.inputs[0] for item in items]), strict=True):
            if len(pieces) > longest or pieces.vanished:
                continue
            if pieces.special[0] == Special.NONE:
                raise Refusal(
                    "The model's tokeniser puts nothing before a sentence that could stand for the root",
                    "a special first piece such as [CLS]",
                    "Choose another model for this task",
                )
            word = np.asarray(pieces.word, np.int64)
            first = first_pieces(word)
            labels = np.full((2, len(pieces)), UNLABELLED)
            for place, (head, relation) in zip(first, _gold(item), strict=True):
                labels[:, place] = 0 if head == ROOT else first[head], known.get(relation, UNLABELLED)
            examples.append(Example(*whole(pieces), labels, item=len(kept), word=word))
            kept.append(item)
        return Seen(kept, examples, len(items) - len(kept))

    def loss(self, learner: Learner, batch: Padded) -> Tensor:
        """Cross-entropy of the heads and of the relations to them."""
        parser, states = _parser(learner), learner.run(batch.shown, hidden=True).hidden[-1]
        heads, relations = batch.labels.to(states.device).unbind(1)
        arcs = parser.arcs(states, _allowed(heads))
        named = parser.relations(states, heads.clamp(min=0))
        return nn.functional.cross_entropy(
            arcs.flatten(0, 1)[heads.flatten() != UNLABELLED], heads.flatten()[heads.flatten() != UNLABELLED]
        ) + nn.functional.cross_entropy(named.flatten(0, 1), relations.flatten(), ignore_index=UNLABELLED)

    def answers(self, learner: Learner, seen: Seen) -> list[Answer]:
        """The tree of the highest score, and the likeliest relation of each of its arcs."""
        parser = _parser(learner)
        found: list[Answer] = [()] * len(seen.items)
        for batch, output in learner.shown(seen.examples, hidden=True):
            states = output.hidden[-1]
            given = batch.labels[:, 0].to(states.device)
            with torch.no_grad():
                arcs = parser.arcs(states, _allowed(given)).log_softmax(-1).cpu().numpy()
                heads, trees = torch.zeros_like(given), list[np.ndarray[tuple[int], np.dtype[np.int64]]]()
                for row, place in enumerate(batch.places):
                    first = seen.examples[place].first_pieces
                    columns = np.append(0, first)
                    trees.append(best_heads(arcs[row][np.ix_(first, columns)]))
                    heads[row, torch.from_numpy(first)] = torch.from_numpy(columns[trees[-1]]).to(heads.device)
                named = parser.relations(states, heads).argmax(-1).cpu().numpy()
            for row, place in enumerate(batch.places):
                relations = named[row, seen.examples[place].first_pieces]
                found[place] = [(int(h) - 1, self.labels[r]) for h, r in zip(trees[row], relations, strict=True)]
        return found

    def counts(self, items: Sequence[Item], answers: Sequence[Answer]) -> Counts:
        """Words with the right head and relation."""
        return _right(items, answers, labelled=True)

    def scores(self, items: Sequence[Item], answers: Sequence[Answer]) -> Scores:
        """Unlabelled and labelled attachment: shares of words with the right head, and the right relation to it."""
        return {name: estimate(_right(items, answers, labelled=name == "LAS")) for name in ("UAS", "LAS")}

    def guesses(self, learnt: Sequence[Item], items: Sequence[Item]) -> Mapping[str, list[Answer]]:
        """Each word's head as far away as is commonest, with the commonest relation to a head there."""
        arcs = [(head - word, relation) for item in learnt for word, (head, relation) in enumerate(_gold(item))
                if head != ROOT]  # fmt: skip
        offset = Counter(offset for offset, _ in arcs).most_common(1)[0][0] if arcs else 1
        near = Counter(relation for apart, relation in arcs if apart == offset).most_common(1)
        usual = near[0][0] if near else self.labels[0]
        return {"majority": [_neighbours(len(item.parts[0]), offset, usual) for item in items]}


def _gold(item: Item) -> list[tuple[int, str]]:
    part = item.parts[0]
    return list(zip(part.heads or (), part.relations or (), strict=True))


def _neighbours(words: int, offset: int, relation: str) -> Answer:
    inside = ((word + offset, 0 <= word + offset < words) for word in range(words))
    return [(head, relation) if there else (ROOT, "root") for head, there in inside]


def _right(items: Sequence[Item], answers: Sequence[Answer], *, labelled: bool) -> Counts:
    right: list[float] = []
    for item, answer in zip(items, answers, strict=True):
        pairs = zip(_gold(item), answer, strict=True)
        right.append(sum(one == other if labelled else one[0] == other[0] for one, other in pairs))
    return Counts(np.array(right, np.float64), np.array([len(item.parts[0]) for item in items], np.float64))


def _allowed(heads: Tensor) -> Tensor:
    """First pieces of words, and the root."""
    allowed = heads != UNLABELLED
    allowed[:, 0] = True
    return allowed


def _parser(learner: Learner) -> Parser:
    assert learner.parser is not None, "a learner of trees has a parser"
    return learner.parser
