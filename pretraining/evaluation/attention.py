"""Where does attention go? Shares by layer, neighbour heads, and heads that find a dependency (Clark et al. 2019)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pretraining.evaluation.following import Pairs
from pretraining.evaluation.states import averaging
from pretraining.evaluation.subject import Pieces, Subject, padded_batches
from pretraining.evaluation.treebank import Tree

LEAST = 100
"""Relations with fewer dependents than this are not reported."""


@dataclass(frozen=True)
class Best:
    """The head that most often finds a relation's other end, beside the best fixed offset; heads are 1-based."""

    head: str
    accuracy: float
    offset: int
    offset_accuracy: float
    direction: str
    n: int


@dataclass(frozen=True)
class Attention:
    """Shares are of a layer's attention mass from every place, mean over heads; neighbours, argmax over all places."""

    sep: list[float]
    cls: list[float]
    sep_of_best_head: list[float]
    uniform: float
    next_head: str
    next_share: float
    next_mass: float
    previous_head: str
    previous_share: float
    previous_mass: float
    relations: dict[str, Best]
    specialists: int
    sentences: int


@torch.inference_mode()
def maps(subject: Subject, sentences: Sequence[Pieces]) -> Iterator[tuple[int, Tensor]]:
    """For each sentence its number and its attention `(layers, heads, places, places)` without padding."""
    for batch in padded_batches([one.ids for one in sentences], subject.device, tokens=4_096):
        out = subject.model.bert(batch.ids, attention_mask=batch.mask, output_attentions=True)
        stack = torch.stack(out.attentions)
        for row, number in enumerate(batch.indices):
            size = len(sentences[number].ids)
            yield number, stack[:, row, :, :size, :size]


@dataclass(frozen=True)
class PairShares:
    """Shares of a layer's attention mass on the two [SEP] and on [CLS] in pairs, beside uniform attention's."""

    sep: list[float]
    cls: list[float]
    uniform_sep: float
    uniform_cls: float
    n: int


@torch.inference_mode()
def pair_shares(subject: Subject, pairs: Pairs, *, first: int = 400) -> PairShares:
    """Over the first `first` pairs, from every place, mean over heads and pairs."""
    sequences, segments = pairs.sequences[:first], pairs.segments[:first]
    sep = torch.zeros(subject.config.num_hidden_layers, device=subject.device)
    cls = sep.clone()
    for batch in padded_batches(sequences, subject.device, segments=segments, tokens=4_096):
        out = subject.model.bert(
            batch.ids, attention_mask=batch.mask, token_type_ids=batch.segments, output_attentions=True
        )
        stack = torch.stack(out.attentions).mean(dim=2)
        from_place = batch.mask / batch.mask.sum(dim=1, keepdim=True)
        sep += torch.einsum("lbij,bi,bj->l", stack, from_place, (batch.ids == subject.sep).float())
        cls += torch.einsum("lbij,bi,bj->l", stack, from_place, (batch.ids == subject.cls).float())
    uniform = sum(1 / len(sequence) for sequence in sequences) / len(sequences)
    return PairShares(
        (sep / len(sequences)).tolist(), (cls / len(sequences)).tolist(), 2 * uniform, uniform, len(sequences)
    )


def word_attention(attention: Tensor, average: Tensor) -> Tensor:
    """`(layers, heads, words, words)`: summed to a word's pieces, averaged from them; special places left out."""
    inner = attention[..., 1:-1, 1:-1]
    return average @ inner @ (average > 0).float().T


def attention_figures(subject: Subject, trees: Sequence[Tree]) -> Attention:
    """All figures in one pass over `[CLS] sentence [SEP]`, sentences that do not fit left out."""
    kept = [(tree, pieces) for tree in trees if (pieces := subject.pieces(tree.words)) is not None]
    layers, heads = subject.config.num_hidden_layers, subject.config.num_attention_heads
    zeros = torch.zeros(layers, heads, device=subject.device)
    sep, cls, after, before, after_mass, before_mass = (zeros.clone() for _ in range(6))
    uniform, steps = 0.0, 0
    found: dict[tuple[str, str], Tensor] = {}
    offsets: dict[tuple[str, str], Counter[int]] = {}
    for number, attention in maps(subject, [pieces for _, pieces in kept]):
        tree, pieces = kept[number]
        size = len(pieces.ids)
        sep += attention[..., -1].mean(dim=-1)
        cls += attention[..., 0].mean(dim=-1)
        uniform += 1 / size
        top = attention.argmax(dim=-1)
        place = torch.arange(size, device=subject.device)
        after += (top[..., :-1] == place[1:]).sum(dim=-1)
        before += (top[..., 1:] == place[:-1]).sum(dim=-1)
        after_mass += attention.diagonal(1, -2, -1).sum(dim=-1)
        before_mass += attention.diagonal(-1, -2, -1).sum(dim=-1)
        steps += size - 1
        _count_relations(tree, word_attention(attention, averaging(pieces.words, subject.device)), found, offsets)
    relations = _best_heads(found, offsets)
    head_share = (sep / len(kept)).max(dim=1).values
    return Attention(
        sep=(sep.mean(dim=1) / len(kept)).tolist(),
        cls=(cls.mean(dim=1) / len(kept)).tolist(),
        sep_of_best_head=head_share.tolist(),
        uniform=uniform / len(kept),
        next_head=_name(after),
        next_share=float(after.max()) / steps,
        next_mass=float(after_mass.max()) / steps,
        previous_head=_name(before),
        previous_share=float(before.max()) / steps,
        previous_mass=float(before_mass.max()) / steps,
        relations=relations,
        specialists=len({best.head for best in relations.values()}),
        sentences=len(kept),
    )


def _count_relations(
    tree: Tree, words: Tensor, found: dict[tuple[str, str], Tensor], offsets: dict[tuple[str, str], Counter[int]]
) -> None:
    """Add, for each head and both directions, how often the strongest other word is the right one."""
    if len(tree.words) < 2:
        return
    barred = words - torch.eye(len(tree.words), device=words.device) * 2
    top = barred.argmax(dim=-1)
    for word, (head, relation) in enumerate(zip(tree.heads, tree.relations, strict=True)):
        if head < 0 or relation == "punct":
            continue
        for direction, here, there in (("dependent to head", word, head), ("head to dependent", head, word)):
            key = (relation, direction)
            hits = (top[..., here] == there).float()
            found[key] = found[key] + hits if key in found else hits
            offsets.setdefault(key, Counter())[there - here] += 1


def _best_heads(found: dict[tuple[str, str], Tensor], offsets: dict[tuple[str, str], Counter[int]]) -> dict[str, Best]:
    """For each frequent relation, the better direction's best head; the offset baseline is that direction's."""
    best: dict[str, Best] = {}
    for (relation, direction), hits in found.items():
        count = offsets[relation, direction].total()
        if count < LEAST:
            continue
        offset, times = offsets[relation, direction].most_common(1)[0]
        one = Best(_name(hits), float(hits.max()) / count, offset, times / count, direction, count)
        if relation not in best or one.accuracy > best[relation].accuracy:
            best[relation] = one
    return dict(sorted(best.items(), key=lambda item: -item[1].n))


def _name(grid: Tensor) -> str:
    """The 1-based `layer-head` of the largest entry."""
    layer, head = divmod(int(grid.argmax()), grid.shape[1])
    return f"{layer + 1}-{head + 1}"
