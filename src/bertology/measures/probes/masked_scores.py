"""What a masked-language-model head says about pieces it cannot see: pseudo-log-likelihoods (salazar2020).

Every copy of an input hides some of its pieces and asks about one of them; copies of all inputs go through the model
together, in batches of similar length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.encoder.encoder import Batch, Encoder
from bertology.encoder.pieces import Pieces, Special
from bertology.errors import Refusal
from bertology.recording.plan import batches, pieces_at_once

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.encoder import Output

Masking = Literal["piece", "rest of word", "word"]
Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Question:
    """One copy of an input: the pieces that are hidden, and the one that is asked about."""

    pieces: Pieces
    hidden: tuple[int, ...]
    place: int


def require_masking(encoder: Encoder, *, purpose: str) -> int:
    """The id of the mask token, refused where the model cannot say what a mask hides."""
    mask = encoder.mask_id
    if "mlm" not in encoder.outputs or mask is None:
        have = ", ".join(sorted(encoder.outputs)) or "none"
        raise Refusal(
            f"{purpose} asks what a mask hides, and {encoder.name} has no masked-language-model head (heads: {have})",
            "a model that was saved with that head",
            "Give one with --model, for example the built-in mini",
        )
    return mask


def questions(pieces: Pieces, masking: Masking) -> Iterator[Question]:
    """One for each piece that is not special: hidden with nothing else, with the rest of its word, or all of it."""
    words = pieces.word.tolist()
    for place in np.flatnonzero(pieces.special == Special.NONE).tolist():
        own = [other for other, word in enumerate(words) if word == words[place] and word >= 0] or [place]
        if masking == "piece":
            own = [place]
        elif masking == "rest of word":
            own = [other for other in own if other >= place]
        yield Question(pieces, tuple(own), place)


def log_probabilities(encoder: Encoder, asked: Sequence[Question]) -> Floats:
    """(question,) the natural logarithm of the probability of the piece that is there."""
    found = np.zeros(len(asked))

    def keep(some: Sequence[int], places: Tensor, output: Output) -> None:
        import torch

        rows = torch.arange(len(some), device=places.device)
        scores = output.logits["mlm"][rows, places].float().log_softmax(-1)
        truth = [int(asked[number].pieces.ids[asked[number].place]) for number in some]
        found[list(some)] = scores[rows, torch.tensor(truth, device=places.device)].cpu().numpy()

    answer(encoder, asked, keep)
    return found


def answer(
    encoder: Encoder,
    asked: Sequence[Question],
    keep: Callable[[Sequence[int], Tensor, Output], None],
    *,
    hidden: bool = False,
) -> None:
    """Run all questions; `keep` is given the numbers of those in a batch, the places they ask about, and the output."""
    import torch

    if not asked:
        return
    mask = encoder.mask_id
    budget = pieces_at_once(encoder.device)
    with torch.inference_mode():
        for some in batches([len(question.pieces) for question in asked], budget):
            chosen = [asked[number] for number in some]
            places = torch.tensor([question.place for question in chosen], device=encoder.device)
            keep(some, places, encoder.run(_batch(chosen, mask or 0, encoder.device), hidden=hidden))


def _batch(asked: Sequence[Question], mask: int, device: str) -> Batch:
    import torch

    width = max(len(question.pieces) for question in asked)
    ids, types, real = (np.zeros((len(asked), width), np.int64) for _ in range(3))
    for row, question in enumerate(asked):
        length = len(question.pieces)
        ids[row, :length], types[row, :length], real[row, :length] = question.pieces.ids, question.pieces.types, 1
        ids[row, list(question.hidden)] = mask
    return Batch(*(torch.from_numpy(array).to(device) for array in (ids, types, real)))
