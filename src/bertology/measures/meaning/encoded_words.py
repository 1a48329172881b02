"""The words of sentences as an encoder's hidden states, the wanted layers alone being kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.corpus import Input
from bertology.corpus.sentence import Sentence
from bertology.encoder.encoder import Encoder
from bertology.encoder.pieces import Pieces
from bertology.measures.meaning.frozen_vectors import Meter, Vectors
from bertology.recording.entry import Entry
from bertology.recording.plan import batches, pieces_at_once
from bertology.recording.shorten import cut

if TYPE_CHECKING:
    from torch import Tensor

WITHOUT, IN_PARTS = "words without a vector", "sentences read in parts"


class _Stretch(NamedTuple):
    """Words of one sentence, from `start` on, that the encoder can read at once."""

    sentence: int
    start: int
    shown: Sentence
    pieces: Pieces


def states_of_words(
    name: str,
    encoder: Encoder,
    chosen: Callable[[Sequence[Tensor]], Tensor],
    sentences: Sequence[Sentence],
    meter: Meter,
) -> Vectors:
    """The mean over the pieces of each word of what `chosen` makes of the hidden states of all layers."""
    import torch

    from bertology.recording.frame import Frame
    from bertology.recording.word_states import word_weights

    counts: Counter[str] = Counter(words=sum(map(len, sentences)))
    stretches = [stretch for stretch in _readable(encoder, sentences, counts) if len(stretch.pieces)]
    found: dict[int, NDArray[np.float32]] = {}
    width, done = 0, 0
    for some in batches([len(stretch.pieces) for stretch in stretches], pieces_at_once(encoder.device)):
        own = [stretches[place] for place in some]
        if not own:
            continue
        entries = [Entry(one.sentence, 0, 0, Input((one.shown,)), one.pieces) for one in own]
        with torch.inference_mode():
            frame = Frame(entries, encoder.device)
            states = chosen(encoder.run(frame.batch, hidden=True).hidden)
            means = (word_weights(frame).to(states.dtype) @ states).float().cpu().numpy()
        width = means.shape[-1]
        for one, values in zip(own, means, strict=True):
            length = len(sentences[one.sentence])
            rows = found.setdefault(one.sentence, np.zeros((length, width), np.float32))
            rows[one.start : one.start + len(one.shown)] = values[: len(one.shown)]
        done += len(own)
        meter(done, len(stretches))
    nothing: NDArray[np.float32] = np.zeros((0, width), np.float32)
    vectors = tuple(
        found.get(place, np.zeros((len(one), width), np.float32) if len(one) else nothing)
        for place, one in enumerate(sentences)
    )
    counts[WITHOUT] += sum(int((~rows.any(1)).sum()) for rows in vectors)
    return Vectors(name, vectors, {key: count for key, count in counts.items() if count})


def _readable(encoder: Encoder, sentences: Sequence[Sentence], counts: Counter[str]) -> list[_Stretch]:
    """Every sentence whole, or in parts that are short enough; a single word that is too long is left out."""
    waiting: list[tuple[int, int, Sentence]] = [(place, 0, one) for place, one in enumerate(sentences)]
    halved: set[int] = set()
    fitting: list[_Stretch] = []
    while waiting:
        tokenised = encoder.tokenise([Input((shown,)) for _, _, shown in waiting])
        left: list[tuple[int, int, Sentence]] = []
        for (place, start, shown), pieces in zip(waiting, tokenised, strict=True):
            middle = len(shown) // 2
            if len(pieces) <= encoder.max_pieces:
                fitting.append(_Stretch(place, start, shown, pieces))
            elif middle:
                halved.add(place)
                left.append((place, start, cut(shown, 0, middle)))
                left.append((place, start + middle, cut(shown, middle, len(shown))))
        waiting = left
    counts[IN_PARTS] += len(halved)
    return fitting
