"""Training sequences: `[CLS] A [SEP] B [SEP]`, or a single sentence (Devlin et al. 2019)."""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from pretraining.stream import Drawing, Stream, draw_sentences, uniform

PAD, UNK, CLS, SEP, MASK = range(5)


@dataclass(frozen=True)
class Sequences:
    """Rows of ids and segments, and lengths; `random` is 1 where B does not follow A, 0 where it does, -1 without B."""

    ids: Tensor
    segments: Tensor
    lengths: Tensor
    random: Tensor


@dataclass(frozen=True)
class Spans:
    """Runs of the token stream: where each begins and how many pieces it has."""

    begin: Tensor
    length: Tensor


def full_pairs(stream: Stream, count: int, generator: Generator) -> Sequences:
    """Pairs of passages that fill the stream's width to the last place, so no row is padded.

    A is whole sentences up to a drawn length, cut at its front where one sentence is longer; B is what follows A or,
    for half of the rows, a passage from another document, cut at its end.
    """
    room = stream.width - 3
    first = draw_sentences(stream, stream.full, count, generator)
    target = (room * (0.15 + 0.7 * uniform(stream, count, generator))).long()
    begin = stream.sentences[first]
    end_of_document = stream.documents[stream.document_of[first] + 1]
    after = torch.searchsorted(stream.sentences, begin + target, right=True) - 1
    after = torch.minimum(torch.maximum(after, first + 1), end_of_document - 1)
    length = torch.minimum(stream.sentences[after] - begin, target)
    is_random, second = _second(stream, stream.full, first, after, generator)
    begin_b = stream.sentences[second]
    end_b = stream.sentences[stream.documents[stream.document_of[second] + 1]]
    b = Spans(begin_b, torch.minimum(end_b - begin_b, room - length))
    # Where the document ends early, A takes the room that B leaves, from the text before it.
    a = Spans(stream.sentences[after] - (room - b.length), room - b.length)
    return _lay_out(stream, a, b, is_random, stream.width)


def short_sequences(stream: Stream, count: int, width: int, generator: Generator) -> Sequences:
    """Half single sentences, half pairs of one sentence each; padded to `width`, the longer sentence cut at its end."""
    first = draw_sentences(stream, stream.followed, count, generator)
    is_random, second = _second(stream, stream.followed, first, first + 1, generator)
    single = torch.arange(count, device=stream.device) < count // 2
    room = torch.where(single, width - 2, width - 3)
    length_a = stream.sentences[first + 1] - stream.sentences[first]
    length_b = torch.where(single, 0, stream.sentences[second + 1] - stream.sentences[second])
    half = torch.div(room, 2, rounding_mode="floor")
    a = Spans(stream.sentences[first], torch.minimum(length_a, torch.maximum(half, room - length_b)))
    b = Spans(stream.sentences[second], torch.where(single, -1, torch.minimum(length_b, room - a.length)))
    return _lay_out(stream, a, b, torch.where(single, -1, is_random), width)


def _second(
    stream: Stream, drawing: Drawing, first: Tensor, following: Tensor, generator: Generator
) -> tuple[Tensor, Tensor]:
    """Whether B is random, and the sentence it begins with: the following one, or any of another document."""
    is_random = uniform(stream, len(first), generator) < 0.5
    elsewhere = draw_sentences(stream, drawing, len(first), generator)
    again = draw_sentences(stream, drawing, len(first), generator)
    same = stream.document_of[elsewhere] == stream.document_of[first]
    elsewhere = torch.where(same, again, elsewhere)
    # Two draws from A's own document leave a true pair, and it is labelled as one.
    is_random &= stream.document_of[elsewhere] != stream.document_of[first]
    return is_random.long(), torch.where(is_random, elsewhere, following)


def _lay_out(stream: Stream, a: Spans, b: Spans, is_random: Tensor, width: int) -> Sequences:
    """Copy the spans into rows; a B of length -1 leaves out B and its [SEP]."""
    place = torch.arange(width, device=stream.device)[None]
    split = a.length[:, None] + 1
    last = split + b.length[:, None] + 1
    source = torch.where(place < split, a.begin[:, None] + place - 1, b.begin[:, None] + place - split - 1)
    ids = stream.ids[source.clamp(0, len(stream.ids) - 1)].long()
    ids = torch.where(place == 0, CLS, ids)
    ids = torch.where((place == split) | (place == last), SEP, ids)
    ids = torch.where(place > last, PAD, ids)
    segments = ((place > split) & (place <= last)).long()
    return Sequences(ids, segments, last[:, 0] + 1, is_random)
