"""Data of structural probes: word states with the dependency tree of each sentence, in batches.

States stay in the recording, in memory or memory-mapped, and are gathered one batch at a time: about 6 MB for 20
sentences and 12 layers of width 384. Gathered states are cached if those of all batches take at most
`MAX_CACHED_BYTES`, and always on a GPU. Otherwise single layers can be selected, whose states are cached if these take
at most as much, or else gathered again for each use. Trees are always cached.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bertology.analyses.probing.dataset import WORD_SITE
from bertology.analyses.structural_probing.tree_batch import PackedTrees, TreeBatch, pack_trees
from bertology.arrays import Array, BoolArray, IntArray, LazySequence
from bertology.corpus.hashing import seeded_hash
from bertology.corpus.sentence import ROOT
from bertology.encoder.token_batch import RecordedInput, word_annotations
from bertology.errors import Refusal
from bertology.lazy import torch
from bertology.numerics.spanning_trees import spanning_trees, tree_depths, tree_distances
from bertology.recording.recording import Recording

if TYPE_CHECKING:
    from torch import Tensor

PENN_PUNCTUATION = frozenset({"''", ",", ".", ":", "``", "-LRB-", "-RRB-"})
"""Penn Treebank tags that the released code excludes; it keeps `$` and `#`."""

VALIDATION_FRACTION = 0.1
MAX_CACHED_BYTES = 2**30


class LayerStates(LazySequence[Array]):
    """(layer, word, width) states of some inputs of a recording: selected layers, possibly with extra layers added."""

    def __init__(
        self,
        source: Sequence[Array],
        indices: Sequence[int],
        layers: Sequence[int] | None = None,
        extra_layers: Sequence[Array] | None = None,
    ) -> None:
        self._source = source
        self._indices = indices
        self._layers = None if layers is None else list(layers)
        self._extra_layers = extra_layers

    def __len__(self) -> int:
        return len(self._indices)

    def load(self, index: int) -> Array:
        """(layer, word, width) states of one input."""
        states = self._source[self._indices[index]]
        if self._extra_layers is None:
            return states if self._layers is None else states[self._layers]
        extra, n_layers = self._extra_layers[index], len(states)
        if self._layers is None:
            return np.concatenate([states, extra])
        return np.stack([states[layer] if layer < n_layers else extra[layer - n_layers] for layer in self._layers])

    def subset(self, indices: Sequence[int]) -> LayerStates:
        """The states of some of the inputs."""
        extra = None if self._extra_layers is None else [self._extra_layers[index] for index in indices]
        return LayerStates(self._source, [self._indices[index] for index in indices], self._layers, extra)

    def select_layers(self, layers: Sequence[int]) -> LayerStates:
        """The states of some layers; extra layers are numbered after the others."""
        selected = layers if self._layers is None else [self._layers[layer] for layer in layers]
        return LayerStates(self._source, self._indices, selected, self._extra_layers)

    def with_extra_layers(self, extra_layers: Sequence[Array]) -> LayerStates:
        """The same states with extra layers, (layer, word, width) for each input."""
        return LayerStates(self, range(len(self)), None, extra_layers)


@dataclass(frozen=True)
class TreeDataset:
    """Sentences with dependency trees, sorted by their words, and how many were skipped, by reason.

    `rows` are their positions among the `n_rows` sentences before any was skipped, which are the same for every model.
    """

    inputs: tuple[RecordedInput, ...]
    states: LayerStates
    skipped: Mapping[str, int]
    rows: tuple[int, ...]
    n_rows: int

    @property
    def lengths(self) -> list[int]:
        """Number of words of each sentence."""
        return [recorded_input.tokens.n_words for recorded_input in self.inputs]

    def subset(self, indices: Sequence[int]) -> TreeDataset:
        """Some of the sentences."""
        inputs, rows = (tuple(values[index] for index in indices) for values in (self.inputs, self.rows))
        return replace(self, inputs=inputs, rows=rows, states=self.states.subset(indices))

    def select_layers(self, layers: Sequence[int]) -> TreeDataset:
        """The same sentences with some layers only."""
        return replace(self, states=self.states.select_layers(layers))

    def random_half(self, seed: int) -> TreeDataset:
        """Half of the sentences, at least two, by a hash of the words and the seed."""
        texts = [" ".join(recorded_input.text.words) for recorded_input in self.inputs]
        order = sorted(range(len(texts)), key=lambda index: seeded_hash(f"half\n{texts[index]}", seed))
        return self.subset(sorted(order[: max(2, len(order) // 2)]))

    def train_validation_split(self, seed: int) -> tuple[TreeDataset, TreeDataset]:
        """Nine tenths for fitting and one tenth for early stopping, by a hash of the words and the seed."""
        texts = [" ".join(recorded_input.text.words) for recorded_input in self.inputs]
        order = sorted(range(len(texts)), key=lambda index: seeded_hash(texts[index], seed))
        n_validation = max(1, round(VALIDATION_FRACTION * len(order)))
        return self.subset(sorted(order[n_validation:])), self.subset(sorted(order[:n_validation]))


def tree_dataset(recording: Recording, indices: Sequence[int]) -> TreeDataset:
    """The inputs that are complete sentences of at least two words with a tree; the others are counted."""
    ordered = sorted(indices, key=lambda index: recording.inputs[index].text.words)
    reasons = [_skip_reason(recording.inputs[index]) for index in ordered]
    rows = tuple(row for row, reason in enumerate(reasons) if not reason)
    usable = [ordered[row] for row in rows]
    return TreeDataset(
        inputs=tuple(recording.inputs[index] for index in usable),
        states=LayerStates(recording[WORD_SITE], usable),
        skipped=dict(sorted(Counter(filter(None, reasons)).items())),
        rows=rows,
        n_rows=len(ordered),
    )


def _skip_reason(recorded_input: RecordedInput) -> str:
    """Why an input cannot be used; empty if it can."""
    segments = recorded_input.text.segments
    if len(segments) != 1:
        return "text pairs"
    if segments[0].governors is None or list(segments[0].governors).count(ROOT) != 1:
        return "no tree with one root"
    if len(segments[0]) < 2:
        return "one word"
    return "words without tokens" if recorded_input.window_index or recorded_input.tokens.dropped_words else ""


def gold_governors(recorded_input: RecordedInput) -> tuple[int, ...]:
    """The governor of each word, `ROOT` for the root."""
    return recorded_input.text.segments[0].governors or ()


def scored_word_mask(recorded_input: RecordedInput, *, legacy: bool) -> BoolArray:
    """(word,) whether it is not punctuation: by UPOS, else XPOS, else relation; by XPOS only with `legacy`."""
    upos, xpos, relations = (word_annotations(recorded_input, name) for name in ("pos", "xpos", "relations"))
    if legacy or (upos[0] is None and xpos[0] is not None):
        if xpos[0] is None:
            raise Refusal(
                f"The sentence {' '.join(recorded_input.text.words)[:60]!r} has no XPOS tags",
                "Penn Treebank tags, by which the released code identifies punctuation",
                "Use a corpus with XPOS tags, or leave out --legacy",
            )
        return np.array([tag not in PENN_PUNCTUATION for tag in xpos], np.bool_)
    if upos[0] is not None:
        return np.array([tag != "PUNCT" for tag in upos], np.bool_)
    return np.array([(relation or "").split(":")[0] != "punct" for relation in relations], np.bool_)


def gold_edges(recorded_input: RecordedInput, word_mask: BoolArray) -> IntArray:
    """(edge, 2) the minimum spanning tree of gold distances over the scored words, as indices among these words.

    These are the edges of the tree, and shortest links instead of edges through words that are not scored.
    """
    return spanning_trees(tree_distances(gold_governors(recorded_input))[np.ix_(word_mask, word_mask)])


class TreeBatches(LazySequence[TreeBatch]):
    """Batches that each have sentences of all lengths, built when accessed.

    Sentences of similar length would take smaller tables, but their batches would differ in depth: what long sentences
    teach a probe then ruins it for short ones, and with few batches it does not recover.
    """

    def __init__(self, dataset: TreeDataset, batch_size: int, device: str) -> None:
        lengths = dataset.lengths
        order = sorted(range(len(lengths)), key=lambda index: (lengths[index], index))
        n_batches = -(-len(order) // batch_size)
        self._groups = [order[start::n_batches] for start in range(n_batches)]
        self._dataset = dataset
        self._batch_size = batch_size
        self._device = device
        self._trees: dict[int, PackedTrees] = {}
        self._states: dict[int, Tensor] = {}
        n_numbers = sum(lengths) * np.prod(dataset.states[0].shape[::2]) if lengths else 0
        self._cache_states = not device.startswith("cpu") or 4 * n_numbers <= MAX_CACHED_BYTES

    def select_layers(self, layers: Sequence[int]) -> Sequence[TreeBatch]:
        """The batches with some layers only; if not all layers can be cached, only these are gathered."""
        if self._cache_states:
            return [batch.select_layers(layers) for batch in self]
        batches = TreeBatches(self._dataset.select_layers(layers), self._batch_size, self._device)
        batches._trees = self._trees
        return batches

    def __len__(self) -> int:
        return len(self._groups)

    def load(self, index: int) -> TreeBatch:
        """One batch, on the device."""
        if index not in self._trees:
            governors = [gold_governors(self._dataset.inputs[sentence]) for sentence in self._groups[index]]
            distances, depths = (
                [torch.from_numpy(measure(tree).astype(np.float32)) for tree in governors]
                for measure in (tree_distances, tree_depths)
            )
            self._trees[index] = pack_trees(distances, depths).to(self._device)
        states = self._states.get(index)
        if states is None:
            gathered = [self._dataset.states[sentence] for sentence in self._groups[index]]
            states = torch.from_numpy(np.concatenate(gathered, 1, dtype=np.float32)).to(self._device)
        if self._cache_states:
            self._states[index] = states
        return TreeBatch(states, self._trees[index])
