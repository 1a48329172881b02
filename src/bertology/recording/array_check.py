"""Whether a stored array fits its site and its input: a recording that contradicts itself is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bertology.arrays import Array
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.recording.recording import EncoderSummary
from bertology.recording.sites import LOGIT_SITES, RAW_SITES, TOKEN_AXES, WORD_AXES, reductions


def array_check(site: str, encoder: EncoderSummary, inputs: Sequence[RecordedInput]) -> Callable[[int, Array], None]:
    """A function that refuses an array of an input with another shape than the axes of its site have.

    Sizes that neither model nor input determine, such as the number of measures, are those of the array read first.
    Sites that no imported module declares have no axes to be checked by.
    """
    sizes: dict[str, int] = {"layer": encoder.layers, "layer+1": encoder.layers + 1, "head": encoder.heads}

    def check(index: int, array: Array) -> None:
        axes = _axes(site)
        if axes is None:
            return
        shape = array.shape[1:] if array.ndim == len(axes) + 1 and site in LOGIT_SITES else array.shape
        tokens = inputs[index].tokens
        lengths = dict.fromkeys(TOKEN_AXES, len(tokens)) | dict.fromkeys(WORD_AXES, tokens.n_words)
        fits = len(shape) == len(axes) and all(
            size == (lengths[axis] if axis in lengths else sizes.setdefault(axis, size))
            for axis, size in zip(axes, shape, strict=True)
        )
        if not fits:
            raise Refusal(
                f"The recording of {encoder.name} has an array of {site} of shape {array.shape} for input {index + 1}",
                f"({', '.join(axes)}) of {len(tokens)} tokens in a model of {encoder.layers} layers and "
                f"{encoder.heads} heads",
                "Record again: arrays and description do not belong together",
            )

    return check


def _axes(site: str) -> tuple[str, ...] | None:
    if site in RAW_SITES or site in LOGIT_SITES:
        return {**RAW_SITES, **LOGIT_SITES}[site].axes
    declared = next((each for each in reductions().values() if each.storage_key == site), None)
    return None if declared is None else ("layer", "head", *declared.axes)
