"""The structural distance probe (Hewitt & Manning 2019), all layers trained together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse.csgraph import minimum_spanning_tree
from torch import Tensor

from pretraining.evaluation.evaluated_model import EvaluatedModel
from pretraining.evaluation.treebank import Tree
from pretraining.evaluation.word_states import word_states

BATCH_SIZE = 64


@dataclass(frozen=True)
class StructuralProbeScores:
    """UUAS by layer, embeddings first, and of the linear chain, without punctuation."""

    uuas: list[float]
    linear_chain: float
    edges: int
    train_sentences: int
    dev_sentences: int


def structural_probe(
    model: EvaluatedModel,
    train: Sequence[Tree],
    dev: Sequence[Tree],
    *,
    rank: int = 64,
    epochs: int = 12,
    seed: int = 0,
) -> StructuralProbeScores:
    """Train on sentences of 3 to 60 words and evaluate on dev; the last epoch is used, none is selected."""
    train_trees, train_states = _with_states(model, train, min_words=3, max_words=60)
    projection = train_probe(train_states, train_trees, rank=rank, epochs=epochs, seed=seed)
    dev_trees, dev_states = _with_states(model, dev)
    scores, linear_chain, edges = uuas(dev_states, dev_trees, projection)
    return StructuralProbeScores(scores, linear_chain, edges, len(train_trees), len(dev_trees))


def _with_states(
    model: EvaluatedModel, trees: Sequence[Tree], *, min_words: int = 1, max_words: float = float("inf")
) -> tuple[list[Tree], list[Tensor]]:
    """The trees within these lengths that fit into the model, and the hidden states of their words."""
    pairs = [
        (tree, states)
        for tree, states in zip(trees, word_states(model, trees), strict=True)
        if states is not None and min_words <= len(tree.words) <= max_words
    ]
    return [tree for tree, _ in pairs], [states for _, states in pairs]


def uuas(states: Sequence[Tensor], trees: Sequence[Tree], projection: Tensor) -> tuple[list[float], float, int]:
    """The UUAS of each layer and of the linear chain, and the number of gold edges."""
    hits = np.zeros(projection.shape[0])
    chain_hits = n_edges = 0
    for tree, sentence_states in zip(trees, states, strict=True):
        words = [word for word, tag in enumerate(tree.tags) if tag not in ("PUNCT", "SYM")]
        gold = gold_edges(tree, words)
        n_edges += len(gold)
        chain_hits += len(gold & {(index, index + 1) for index in range(len(words) - 1)})
        distances = _distances(sentence_states[:, words], projection).cpu().numpy() if gold else []
        for layer, layer_distances in enumerate(distances):
            hits[layer] += len(gold & spanning_edges(layer_distances))
    return (hits / n_edges).tolist(), chain_hits / n_edges, n_edges


def gold_edges(tree: Tree, words: Sequence[int]) -> set[tuple[int, int]]:
    """Undirected tree edges between these words, as ordered pairs of indices into `words`."""
    index = {word: number for number, word in enumerate(words)}
    return {
        (min(index[word], index[governor]), max(index[word], index[governor]))
        for word, governor in enumerate(tree.governors)
        if word in index and governor in index
    }


def spanning_edges(distances: np.ndarray) -> set[tuple[int, int]]:
    """The edges of the minimum spanning tree of a complete graph, as ordered pairs."""
    # scipy treats 0 as a missing edge; the constant changes neither the order of distances nor the tree.
    tree = minimum_spanning_tree(np.triu(distances.clip(min=0) + 1e-6, 1)).tocoo()
    return {(min(a, b), max(a, b)) for a, b in zip(tree.row.tolist(), tree.col.tolist(), strict=True)}


def tree_distances(tree: Tree) -> Tensor:
    """`(words, words)`: the number of edges on the path between two words."""
    n_words = len(tree.words)
    distances = torch.full((n_words, n_words), float("inf"))
    distances.fill_diagonal_(0)
    for word, governor in enumerate(tree.governors):
        if governor >= 0:
            distances[word, governor] = distances[governor, word] = 1
    for middle in range(n_words):
        distances = torch.minimum(distances, distances[:, middle, None] + distances[None, middle, :])
    return distances


def _distances(states: Tensor, projection: Tensor) -> Tensor:
    """Squared distances `(layers, ..., words, words)` after each layer's projection."""
    projected = torch.einsum("l...nd,ldk->l...nk", states, projection)
    norms = projected.square().sum(dim=-1)
    return norms.unsqueeze(-1) + norms.unsqueeze(-2) - 2 * projected @ projected.transpose(-1, -2)


def train_probe(states: list[Tensor], trees: list[Tree], *, rank: int, epochs: int, seed: int) -> Tensor:
    """Projections `(layers, width, rank)` that minimise the L1 loss of tree distances, as in the paper."""
    layers, _, width = states[0].shape
    device = states[0].device
    generator = torch.Generator().manual_seed(seed)
    initial = torch.empty(layers, width, rank).uniform_(-0.05, 0.05, generator=generator)
    projection = initial.to(device).requires_grad_()
    optimiser = torch.optim.Adam([projection], lr=1e-3)
    gold_distances = [tree_distances(tree) for tree in trees]
    steps = epochs * ((len(states) + BATCH_SIZE - 1) // BATCH_SIZE)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.02, steps)
    for _ in range(epochs):
        for batch, gold, n_words in _batches(states, gold_distances, generator):
            errors = (_distances(batch, projection) - gold).abs() * (gold >= 0)
            loss = (errors.sum(dim=(-1, -2)) / n_words.square()).mean(dim=1).sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    return projection.detach()


def _batches(
    states: list[Tensor], gold_distances: list[Tensor], generator: torch.Generator
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Batches of similar length in random order.

    States are `(layers, batch, words, width)`, gold distances are -1 in padding; word counts are per sentence.
    """
    shuffled: list[int] = torch.randperm(len(states), generator=generator).tolist()
    order = sorted(shuffled, key=lambda index: len(gold_distances[index]))
    batches = [order[start : start + BATCH_SIZE] for start in range(0, len(order), BATCH_SIZE)]
    for number in torch.randperm(len(batches), generator=generator).tolist():
        indices = batches[number]
        max_words = max(len(gold_distances[index]) for index in indices)
        layers, _, width = states[0].shape
        batch = states[0].new_zeros(layers, len(indices), max_words, width)
        gold = torch.full((len(indices), max_words, max_words), -1.0)
        for row, index in enumerate(indices):
            length = len(gold_distances[index])
            batch[:, row, :length] = states[index]
            gold[row, :length, :length] = gold_distances[index]
        n_words = torch.tensor([float(len(gold_distances[index])) for index in indices])
        yield batch, gold.to(batch.device), n_words.to(batch.device)
