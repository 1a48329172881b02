"""Training sequences: `[CLS] A [SEP] B [SEP]`, or a single sentence (Devlin et al. 2019)."""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from pretraining.stream import SentenceDistribution, TokenStream, sample_sentences, uniform

PAD, UNK, CLS, SEP, MASK = range(5)
NO_PAIR = -1
"""NSP label of a single sentence."""


@dataclass(frozen=True)
class Sequences:
    """Padded rows with their segments and lengths; `nsp_labels` is 0 if B follows A, 1 if not, -1 without a B."""

    ids: Tensor
    segments: Tensor
    lengths: Tensor
    nsp_labels: Tensor


@dataclass(frozen=True)
class TokenSpans:
    """Spans of the token stream: the index of the first token and the number of tokens."""

    start: Tensor
    length: Tensor


def full_pairs(stream: TokenStream, count: int, generator: Generator) -> Sequences:
    """Pairs of passages of exactly the stream's sequence length, so that no row is padded.

    A consists of complete sentences up to a random length, truncated at its start if one sentence is longer. B is the
    continuation of A or, in half of the rows, a passage from another document; it is truncated at its end.
    """
    available = stream.max_length - 3
    first = sample_sentences(stream, stream.long_enough, count, generator)
    target = (available * (0.15 + 0.7 * uniform(stream, count, generator))).long()
    start = stream.sentences[first]
    document_end = stream.documents[stream.document_of[first] + 1]
    after = torch.searchsorted(stream.sentences, start + target, right=True) - 1
    after = torch.minimum(torch.maximum(after, first + 1), document_end - 1)
    length = torch.minimum(stream.sentences[after] - start, target)
    is_random, second = _second_sentence(stream, stream.long_enough, first, after, generator)
    start_b = stream.sentences[second]
    end_b = stream.sentences[stream.documents[stream.document_of[second] + 1]]
    b = TokenSpans(start_b, torch.minimum(end_b - start_b, available - length))
    # If B's document ends early, A is extended to the left to fill the row.
    a = TokenSpans(stream.sentences[after] - (available - b.length), available - b.length)
    return _lay_out(stream, a, b, is_random, stream.max_length)


def short_sequences(stream: TokenStream, count: int, max_length: int, generator: Generator) -> Sequences:
    """Half single sentences, half pairs of one sentence each; the longer sentence is truncated at its end."""
    first = sample_sentences(stream, stream.followed, count, generator)
    is_random, second = _second_sentence(stream, stream.followed, first, first + 1, generator)
    is_single = torch.arange(count, device=stream.device) < count // 2
    available = torch.where(is_single, max_length - 2, max_length - 3)
    length_a = stream.sentences[first + 1] - stream.sentences[first]
    length_b = torch.where(is_single, 0, stream.sentences[second + 1] - stream.sentences[second])
    half = torch.div(available, 2, rounding_mode="floor")
    a = TokenSpans(stream.sentences[first], torch.minimum(length_a, torch.maximum(half, available - length_b)))
    b = TokenSpans(stream.sentences[second], torch.where(is_single, -1, torch.minimum(length_b, available - a.length)))
    return _lay_out(stream, a, b, torch.where(is_single, NO_PAIR, is_random), max_length)


def _second_sentence(
    stream: TokenStream,
    distribution: SentenceDistribution,
    first: Tensor,
    following: Tensor,
    generator: Generator,
) -> tuple[Tensor, Tensor]:
    """Whether B is random, and its first sentence: the following one, or a random one from another document."""
    is_random = uniform(stream, len(first), generator) < 0.5
    candidate = sample_sentences(stream, distribution, len(first), generator)
    second_candidate = sample_sentences(stream, distribution, len(first), generator)
    same_document = stream.document_of[candidate] == stream.document_of[first]
    candidate = torch.where(same_document, second_candidate, candidate)
    # If both candidates are from A's document, the pair is a true one and is labelled as such.
    is_random &= stream.document_of[candidate] != stream.document_of[first]
    return is_random.long(), torch.where(is_random, candidate, following)


def _lay_out(stream: TokenStream, a: TokenSpans, b: TokenSpans, nsp_labels: Tensor, max_length: int) -> Sequences:
    """Copy the spans into rows; a B of length -1 omits B and its [SEP]."""
    position = torch.arange(max_length, device=stream.device)[None]
    first_sep = a.length[:, None] + 1
    last_sep = first_sep + b.length[:, None] + 1
    source = torch.where(
        position < first_sep, a.start[:, None] + position - 1, b.start[:, None] + position - first_sep - 1
    )
    ids = stream.ids[source.clamp(0, len(stream.ids) - 1)].long()
    ids = torch.where(position == 0, CLS, ids)
    ids = torch.where((position == first_sep) | (position == last_sep), SEP, ids)
    ids = torch.where(position > last_sep, PAD, ids)
    segments = ((position > first_sep) & (position <= last_sep)).long()
    return Sequences(ids, segments, last_sep[:, 0] + 1, nsp_labels)
