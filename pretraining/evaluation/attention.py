"""Attention to special and neighbouring tokens, and heads that follow a dependency relation (Clark et al. 2019)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pretraining.evaluation.evaluated_model import EvaluatedModel, TokenisedSentence, padded_batches
from pretraining.evaluation.next_sentence import PassagePairs
from pretraining.evaluation.treebank import Tree
from pretraining.evaluation.word_states import averaging_matrix

MIN_DEPENDENTS = 100
"""Relations with fewer dependents are not reported."""
BATCH_TOKENS = 4_096

RelationDirection = tuple[str, str]
"""A dependency relation and the direction in which it is followed."""


@dataclass(frozen=True)
class BestHead:
    """The head that most accurately follows a relation (1-based layer-head), with the best fixed offset."""

    head: str
    accuracy: float
    offset: int
    offset_accuracy: float
    direction: str
    n: int


@dataclass(frozen=True)
class AttentionMeasures:
    """Attention to special tokens by layer, and heads that attend to neighbouring tokens or follow a relation.

    `sep`, `cls` and `uniform` are shares of the attention of all tokens, averaged over heads and sentences. The
    accuracy of a neighbour head is the proportion of tokens whose highest weight is on the neighbour.
    """

    sep: list[float]
    cls: list[float]
    sep_highest_head: list[float]
    uniform: float
    next_head: str
    next_accuracy: float
    next_attention: float
    previous_head: str
    previous_accuracy: float
    previous_attention: float
    relations: dict[str, BestHead]
    n_best_heads: int
    sentences: int


@torch.inference_mode()
def iterate_attention(model: EvaluatedModel, sentences: Sequence[TokenisedSentence]) -> Iterator[tuple[int, Tensor]]:
    """For each sentence its index and its attention `(layers, heads, tokens, tokens)` without padding."""
    for batch in padded_batches([sentence.ids for sentence in sentences], model.device, max_tokens=BATCH_TOKENS):
        output = model.model.bert(batch.ids, attention_mask=batch.mask, output_attentions=True)
        attention = torch.stack(output.attentions)
        for row, index in enumerate(batch.indices):
            length = len(sentences[index].ids)
            yield index, attention[:, row, :, :length, :length]


@dataclass(frozen=True)
class PairAttention:
    """Shares of each layer's attention to the two [SEP] and to [CLS] in pairs, with those of uniform attention."""

    sep: list[float]
    cls: list[float]
    uniform_sep: float
    uniform_cls: float
    n: int


@torch.inference_mode()
def measure_pair_attention(model: EvaluatedModel, pairs: PassagePairs, *, max_pairs: int = 400) -> PairAttention:
    """Mean attention of all tokens to special tokens, over heads and the first `max_pairs` pairs."""
    sequences, segments = pairs.sequences[:max_pairs], pairs.segments[:max_pairs]
    sep = torch.zeros(model.config.num_hidden_layers, device=model.device)
    cls = sep.clone()
    for batch in padded_batches(sequences, model.device, segments=segments, max_tokens=BATCH_TOKENS):
        output = model.model.bert(
            batch.ids, attention_mask=batch.mask, token_type_ids=batch.segments, output_attentions=True
        )
        attention = torch.stack(output.attentions).mean(dim=2)
        token_weights = batch.mask / batch.mask.sum(dim=1, keepdim=True)
        sep += torch.einsum("lbij,bi,bj->l", attention, token_weights, (batch.ids == model.sep).float())
        cls += torch.einsum("lbij,bi,bj->l", attention, token_weights, (batch.ids == model.cls).float())
    n = len(sequences)
    uniform = sum(1 / len(sequence) for sequence in sequences) / n
    return PairAttention((sep / n).tolist(), (cls / n).tolist(), 2 * uniform, uniform, n)


def word_attention(attention: Tensor, averages: Tensor) -> Tensor:
    """`(layers, heads, words, words)`: summed to a word's tokens, averaged from them, without special tokens."""
    non_special = attention[..., 1:-1, 1:-1]
    return averages @ non_special @ (averages > 0).float().T


def measure_attention(model: EvaluatedModel, trees: Sequence[Tree]) -> AttentionMeasures:
    """All measures in one pass over `[CLS] sentence [SEP]`; sentences that are too long are skipped."""
    inputs = [(tree, sentence) for tree in trees if (sentence := model.tokenise(tree.words)) is not None]
    layers, heads = model.config.num_hidden_layers, model.config.num_attention_heads
    zeros = torch.zeros(layers, heads, device=model.device)
    sep, cls, next_hits, previous_hits, next_attention, previous_attention = (zeros.clone() for _ in range(6))
    uniform, n_neighbours = 0.0, 0
    hits: dict[RelationDirection, Tensor] = {}
    offsets: dict[RelationDirection, Counter[int]] = {}
    for index, attention in iterate_attention(model, [sentence for _, sentence in inputs]):
        tree, sentence = inputs[index]
        length = len(sentence.ids)
        sep += attention[..., -1].mean(dim=-1)
        cls += attention[..., 0].mean(dim=-1)
        uniform += 1 / length
        strongest = attention.argmax(dim=-1)
        positions = torch.arange(length, device=model.device)
        next_hits += (strongest[..., :-1] == positions[1:]).sum(dim=-1)
        previous_hits += (strongest[..., 1:] == positions[:-1]).sum(dim=-1)
        next_attention += attention.diagonal(1, -2, -1).sum(dim=-1)
        previous_attention += attention.diagonal(-1, -2, -1).sum(dim=-1)
        n_neighbours += length - 1
        between_words = word_attention(attention, averaging_matrix(sentence.word_indices, model.device))
        _count_relations(tree, between_words, hits, offsets)
    relations = _best_heads(hits, offsets)
    n = len(inputs)
    return AttentionMeasures(
        sep=(sep.mean(dim=1) / n).tolist(),
        cls=(cls.mean(dim=1) / n).tolist(),
        sep_highest_head=(sep / n).max(dim=1).values.tolist(),
        uniform=uniform / n,
        next_head=_highest_head(next_hits),
        next_accuracy=float(next_hits.max()) / n_neighbours,
        next_attention=float(next_attention.max()) / n_neighbours,
        previous_head=_highest_head(previous_hits),
        previous_accuracy=float(previous_hits.max()) / n_neighbours,
        previous_attention=float(previous_attention.max()) / n_neighbours,
        relations=relations,
        n_best_heads=len({best.head for best in relations.values()}),
        sentences=n,
    )


def _count_relations(
    tree: Tree,
    attention: Tensor,
    hits: dict[RelationDirection, Tensor],
    offsets: dict[RelationDirection, Counter[int]],
) -> None:
    """Count, for each head and both directions, how often the strongest other word is the right one."""
    if len(tree.words) < 2:
        return
    without_self = attention - torch.eye(len(tree.words), device=attention.device) * 2
    strongest = without_self.argmax(dim=-1)
    for word, (governor, relation) in enumerate(zip(tree.governors, tree.relations, strict=True)):
        if governor < 0 or relation == "punct":
            continue
        for direction, source, target in (
            ("dependent to governor", word, governor),
            ("governor to dependent", governor, word),
        ):
            key = (relation, direction)
            is_hit = (strongest[..., source] == target).float()
            hits[key] = hits[key] + is_hit if key in hits else is_hit
            offsets.setdefault(key, Counter())[target - source] += 1


def _best_heads(
    hits: dict[RelationDirection, Tensor], offsets: dict[RelationDirection, Counter[int]]
) -> dict[str, BestHead]:
    """For each frequent relation, the best head in the better direction, with that direction's best fixed offset."""
    best: dict[str, BestHead] = {}
    for (relation, direction), head_hits in hits.items():
        n = offsets[relation, direction].total()
        if n < MIN_DEPENDENTS:
            continue
        offset, offset_hits = offsets[relation, direction].most_common(1)[0]
        accuracy = float(head_hits.max()) / n
        if relation not in best or accuracy > best[relation].accuracy:
            best[relation] = BestHead(_highest_head(head_hits), accuracy, offset, offset_hits / n, direction, n)
    return dict(sorted(best.items(), key=lambda relation_and_head: -relation_and_head[1].n))


def _highest_head(values: Tensor) -> str:
    """The 1-based `layer-head` of the highest value in a (layer, head) grid."""
    layer, head = divmod(int(values.argmax()), values.shape[1])
    return f"{layer + 1}-{head + 1}"
