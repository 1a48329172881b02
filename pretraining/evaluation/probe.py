"""Is the tree in the geometry? The structural distance probe (Hewitt & Manning 2019), all layers side by side."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse.csgraph import minimum_spanning_tree
from torch import Tensor

from pretraining.evaluation.states import word_states
from pretraining.evaluation.subject import Subject
from pretraining.evaluation.treebank import Tree


@dataclass(frozen=True)
class Probe:
    """UUAS by layer (embeddings first): share of gold edges in the predicted spanning tree, punctuation left out."""

    uuas: list[float]
    chain: float
    edges: int
    train_sentences: int
    dev_sentences: int


def structural_probe(
    subject: Subject, train: Sequence[Tree], dev: Sequence[Tree], *, rank: int = 64, epochs: int = 12, seed: int = 0
) -> Probe:
    """Train on sentences of 3 to 60 words, judge on all of dev that fits; the epoch is not chosen, the last is used."""
    known = [
        (tree, one)
        for tree, one in zip(train, word_states(subject, train), strict=True)
        if one is not None and 3 <= len(tree.words) <= 60
    ]
    transform = train_probe([one for _, one in known], [tree for tree, _ in known], rank=rank, epochs=epochs, seed=seed)
    judged = [(tree, one) for tree, one in zip(dev, word_states(subject, dev), strict=True) if one is not None]
    scores, chain, edges = uuas([one for _, one in judged], [tree for tree, _ in judged], transform)
    return Probe(scores, chain, edges, len(known), len(judged))


def uuas(states: Sequence[Tensor], trees: Sequence[Tree], transform: Tensor) -> tuple[list[float], float, int]:
    """By layer, the share of gold edges found; the share neighbours are; and the number of edges."""
    counts = np.zeros(transform.shape[0])
    chain = edges = 0
    for tree, one in zip(trees, states, strict=True):
        words = [at for at, tag in enumerate(tree.tags) if tag not in ("PUNCT", "SYM")]
        gold = gold_edges(tree, words)
        edges += len(gold)
        chain += len(gold & {(at, at + 1) for at in range(len(words) - 1)})
        distances = _distances(one[:, words], transform).cpu().numpy() if gold else []
        for layer, matrix in enumerate(distances):
            counts[layer] += len(gold & spanning_edges(matrix))
    return (counts / edges).tolist(), chain / edges, edges


def gold_edges(tree: Tree, words: Sequence[int]) -> set[tuple[int, int]]:
    """Undirected tree edges between the given words, as ordered pairs of places among them."""
    place = {word: number for number, word in enumerate(words)}
    return {
        (min(place[word], place[head]), max(place[word], place[head]))
        for word, head in enumerate(tree.heads)
        if word in place and head in place
    }


def spanning_edges(distances: np.ndarray) -> set[tuple[int, int]]:
    """The edges of the minimum spanning tree of a full graph, as ordered pairs."""
    # scipy reads a zero as "no edge", so distances are moved off zero; order, and with it the tree, is unchanged.
    tree = minimum_spanning_tree(np.triu(distances.clip(min=0) + 1e-6, 1)).tocoo()
    return {(min(a, b), max(a, b)) for a, b in zip(tree.row.tolist(), tree.col.tolist(), strict=True)}


def tree_distances(tree: Tree) -> Tensor:
    """`(words, words)`: number of edges on the path between two words."""
    count = len(tree.words)
    distances = torch.full((count, count), float("inf"))
    distances.fill_diagonal_(0)
    for word, head in enumerate(tree.heads):
        if head >= 0:
            distances[word, head] = distances[head, word] = 1
    for middle in range(count):
        distances = torch.minimum(distances, distances[:, middle, None] + distances[None, middle, :])
    return distances


def _distances(states: Tensor, transform: Tensor) -> Tensor:
    """Squared distances `(layers, ..., words, words)` after the layer's linear map."""
    moved = torch.einsum("l...nd,ldk->l...nk", states, transform)
    norms = moved.square().sum(dim=-1)
    return norms.unsqueeze(-1) + norms.unsqueeze(-2) - 2 * moved @ moved.transpose(-1, -2)


def train_probe(states: list[Tensor], trees: list[Tree], *, rank: int, epochs: int, seed: int) -> Tensor:
    """The maps `(layers, width, rank)` that least miss tree distance: L1, by sentence, over its words squared."""
    layers, _, width = states[0].shape
    device = states[0].device
    generator = torch.Generator().manual_seed(seed)
    start = torch.empty(layers, width, rank).uniform_(-0.05, 0.05, generator=generator)
    transform = start.to(device).requires_grad_()
    optimiser = torch.optim.Adam([transform], lr=1e-3)
    golds = [tree_distances(tree) for tree in trees]
    steps = epochs * ((len(states) + 63) // 64)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.02, steps)
    for _ in range(epochs):
        for batch, gold, size in _batches(states, golds, generator):
            missed = (_distances(batch, transform) - gold).abs() * (gold >= 0)
            loss = (missed.sum(dim=(-1, -2)) / size.square()).mean(dim=1).sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    return transform.detach()


def _batches(
    states: list[Tensor], golds: list[Tensor], generator: torch.Generator
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Batches of 64 of like length: states `(layers, batch, words, width)`, distances (-1 in padding), word counts."""
    shuffled: list[int] = torch.randperm(len(states), generator=generator).tolist()
    order = sorted(shuffled, key=lambda number: len(golds[number]))
    groups = [order[at : at + 64] for at in range(0, len(order), 64)]
    for at in torch.randperm(len(groups), generator=generator).tolist():
        group = groups[at]
        words = max(len(golds[number]) for number in group)
        layers, _, width = states[0].shape
        batch = states[0].new_zeros(layers, len(group), words, width)
        gold = torch.full((len(group), words, words), -1.0)
        for row, number in enumerate(group):
            count = len(golds[number])
            batch[:, row, :count] = states[number]
            gold[row, :count, :count] = golds[number]
        size = torch.tensor([float(len(golds[number])) for number in group])
        yield batch, gold.to(batch.device), size.to(batch.device)
