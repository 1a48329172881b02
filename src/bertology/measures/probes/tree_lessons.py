"""What a structural probe is fitted to and judged on: states of words beside the tree over them, in batches.

States stay where the recording has them, in memory or mapped from its store, and are gathered a batch at a time, some
6 MB for 20 sentences and 12 layers of width 384. They are kept once they were gathered where those of all batches take
no more than `KEPT` bytes, and on an accelerator. Where they take more, layers can be had alone, and are kept if these
take no more; otherwise states are gathered again each time. Trees are kept.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.sentence import ROOT
from bertology.errors import Refusal
from bertology.maths.spanning_trees import spanning_trees, tree_depths, tree_distances
from bertology.recording.annotation import word_layer
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.maths.tree_batch import TreeBatch, Trees

Numbers = NDArray[Any]
Flags = NDArray[np.bool_]

SITE = "hidden.words"
PENN_PUNCTUATION = frozenset({"''", ",", ".", ":", "``", "-LRB-", "-RRB-"})
"""The tags of the Penn Treebank that the released code leaves out; `$` and `#` stay in."""

HELD_OUT = 0.1
KEPT = 2**30


class States(Sequence[Numbers]):
    """(layer, word, width) of some entries of a recording, some of its layers, perhaps with more rows below them."""

    def __init__(
        self,
        recorded: Sequence[Numbers],
        places: Sequence[int],
        layers: Sequence[int] | None = None,
        more: Sequence[Numbers] | None = None,
    ) -> None:
        self._recorded = recorded
        self._places = places
        self._layers = None if layers is None else list(layers)
        self._more = more

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Numbers: ...
    @overload
    def __getitem__(self, index: slice) -> list[Numbers]: ...
    def __getitem__(self, index: int | slice) -> Numbers | list[Numbers]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        states = self._recorded[self._places[index]]
        if self._more is None:
            return states if self._layers is None else states[self._layers]
        more, rows = self._more[index], len(states)
        if self._layers is None:
            return np.concatenate([states, more])
        return np.stack([states[row] if row < rows else more[row - rows] for row in self._layers])

    def of(self, places: Sequence[int]) -> States:
        """Those of some of the entries."""
        more = None if self._more is None else [self._more[place] for place in places]
        return States(self._recorded, [self._places[place] for place in places], self._layers, more)

    def of_layers(self, layers: Sequence[int]) -> States:
        """Those of some layers, further rows counted after them."""
        chosen = layers if self._layers is None else [self._layers[layer] for layer in layers]
        return States(self._recorded, self._places, chosen, self._more)

    def with_more(self, more: Sequence[Numbers]) -> States:
        """The same with further rows, (row, word, width) an entry."""
        return States(self, range(len(self)), None, more)


@dataclass(frozen=True)
class TreeLessons:
    """Sentences with a tree over all their words, in an order that depends on their words alone; what was left out."""

    entries: tuple[Entry, ...]
    states: States
    skipped: Mapping[str, int]

    @property
    def lengths(self) -> list[int]:
        """Words of each sentence."""
        return [entry.pieces.words for entry in self.entries]

    def of(self, places: Sequence[int]) -> TreeLessons:
        """Some of the sentences."""
        return replace(self, entries=tuple(self.entries[place] for place in places), states=self.states.of(places))

    def apart(self, seed: int) -> tuple[TreeLessons, TreeLessons]:
        """Nine tenths to fit and one to say when to stop, chosen by the words of the sentences and the seed."""

        def drawn(place: int) -> bytes:
            return hashlib.sha256(f"{seed}\n{' '.join(self.entries[place].input.words)}".encode()).digest()

        order = sorted(range(len(self.entries)), key=drawn)
        held_out = max(1, round(HELD_OUT * len(order)))
        return self.of(sorted(order[held_out:])), self.of(sorted(order[:held_out]))


def tree_lessons(recording: Recording, chosen: Sequence[int]) -> TreeLessons:
    """The chosen entries that are one whole sentence of two words or more with a tree; the others are counted."""
    reasons = {place: _unfit(recording.entries[place]) for place in chosen}
    kept = sorted((place for place in chosen if not reasons[place]), key=lambda i: recording.entries[i].input.words)
    skipped = Counter(reason for reason in reasons.values() if reason)
    entries = tuple(recording.entries[place] for place in kept)
    return TreeLessons(entries, States(recording[SITE], kept), dict(sorted(skipped.items())))


def _unfit(entry: Entry) -> str:
    """Why an entry cannot be used; empty where it can."""
    parts = entry.input.parts
    if len(parts) != 1:
        return "pairs of texts"
    if parts[0].heads is None or list(parts[0].heads).count(ROOT) != 1:
        return "without a tree of one root"
    if len(parts[0]) < 2:
        return "of one word"
    return "with a word that has no piece" if entry.window or entry.pieces.vanished else ""


def refuse_too_few(learned: TreeLessons, tested: TreeLessons, name: str) -> None:
    """Refuse where there is nothing to fit, to stop by or to judge on."""
    if len(learned.entries) < 2 or not tested.entries:
        left_out = {f"{count} {reason}" for part in (learned, tested) for reason, count in part.skipped.items()}
        raise Refusal(
            f"{name} has {len(learned.entries)} sentences with a usable tree to train on and {len(tested.entries)} to "
            f"test on" + (f" (left out: {', '.join(sorted(left_out))})" if left_out else ""),
            "at least two to train on and one to test on, each of two words or more",
            "Use a larger treebank, or give another one with --train",
        )


def gold_heads(entry: Entry) -> tuple[int, ...]:
    """The head of each word, `ROOT` for the root."""
    return entry.input.parts[0].heads or ()


def scored_words(entry: Entry, *, legacy: bool) -> Flags:
    """(word,) which words are no punctuation: by UPOS, else XPOS, else relation; by XPOS alone with `legacy`."""
    universal, penn, relations = (word_layer(entry, layer) for layer in ("pos", "xpos", "relations"))
    if legacy or (universal[0] is None and penn[0] is not None):
        if penn[0] is None:
            raise Refusal(
                f"The sentence {' '.join(entry.input.words)[:60]!r} has no XPOS tags",
                "tags of the Penn Treebank, by which the released code knows punctuation",
                "Use a corpus with XPOS tags, or leave --legacy out",
            )
        return np.array([tag not in PENN_PUNCTUATION for tag in penn], np.bool_)
    if universal[0] is not None:
        return np.array([tag != "PUNCT" for tag in universal], np.bool_)
    return np.array([(relation or "").split(":")[0] != "punct" for relation in relations], np.bool_)


def gold_edges(entry: Entry, words: Flags) -> NDArray[np.int64]:
    """(edge, 2) the spanning tree of gold distances over the words that count, as their places among these.

    Those are the tree's own edges, and the shortest links in the place of edges over words that do not count.
    """
    return spanning_trees(tree_distances(gold_heads(entry))[np.ix_(words, words)])


class Batches(Sequence["TreeBatch"]):
    """Sentences of like length together, so many at a time, made when asked for."""

    def __init__(self, lessons: TreeLessons, size: int, device: str) -> None:
        lengths = lessons.lengths
        order = sorted(range(len(lengths)), key=lambda place: (lengths[place], place))
        self._groups = [order[start : start + size] for start in range(0, len(order), size)]
        self._lessons = lessons
        self._size = size
        self._device = device
        self._trees: dict[int, Trees] = {}
        self._states: dict[int, Tensor] = {}
        numbers = sum(lengths) * np.prod(lessons.states[0].shape[::2]) if lengths else 0
        self._keep = not device.startswith("cpu") or 4 * numbers <= KEPT

    def of_layers(self, chosen: Sequence[int]) -> Sequence[TreeBatch]:
        """The same with some layers only; where not all layers can be kept, states of these alone are gathered."""
        if self._keep:
            return [batch.of_layers(chosen) for batch in self]
        lessons = replace(self._lessons, states=self._lessons.states.of_layers(chosen))
        found = Batches(lessons, self._size, self._device)
        found._trees = self._trees
        return found

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[TreeBatch]:
        return (self[index] for index in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> TreeBatch: ...
    @overload
    def __getitem__(self, index: slice) -> list[TreeBatch]: ...
    def __getitem__(self, index: int | slice) -> TreeBatch | list[TreeBatch]:
        from bertology.maths.tree_batch import TreeBatch

        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        if index not in self._trees:
            self._trees[index] = _trees(self._lessons, self._groups[index]).to(self._device)
        states = self._states.get(index)
        if states is None:
            states = _together(self._lessons, self._groups[index]).to(self._device)
        if self._keep:
            self._states[index] = states
        return TreeBatch(states, self._trees[index])


def _trees(lessons: TreeLessons, places: Sequence[int]) -> Trees:
    import torch

    from bertology.maths.tree_batch import trees_of

    heads = [gold_heads(lessons.entries[place]) for place in places]
    distances, depths = (
        [torch.from_numpy(measure(own).astype(np.float32)) for own in heads]
        for measure in (tree_distances, tree_depths)
    )
    return trees_of(distances, depths)


def _together(lessons: TreeLessons, places: Sequence[int]) -> Tensor:
    """(layer, word, width) of all words of some sentences."""
    import torch

    return torch.from_numpy(np.concatenate([lessons.states[place] for place in places], 1, dtype=np.float32))
