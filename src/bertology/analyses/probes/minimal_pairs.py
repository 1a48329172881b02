"""Whether a masked language model prefers the acceptable sentence of a minimal pair (warstadt2020, salazar2020)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.analyses.probing.pseudo_likelihood import (
    MaskedCopy,
    Masking,
    masked_copies,
    masked_log_probs,
    require_mlm,
    tokeniser_words,
)
from bertology.analyses.probing.train_test_split import randomised_encoder
from bertology.arrays import BoolArray, FloatArray
from bertology.corpus.example import Example
from bertology.encoder.encoder import Encoder
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_proportion
from bertology.recording.recording import Recording
from bertology.results.answers import Answer
from bertology.results.measured_shape import MODEL_SERIES
from bertology.results.shapes import Table

SUM_ACCURACY, MEAN_ACCURACY = "accuracy", "accuracy (mean log-probability)"
ALL_PARADIGMS = "all paradigms"

RowMasks = dict[str, BoolArray]
"""The pairs of each row of the table."""


@dataclass(frozen=True)
class _MinimalPair:
    """The inputs of an acceptable and an unacceptable sentence, their phenomenon, paradigm and id or number."""

    acceptable: tuple[RecordedInput, ...]
    unacceptable: tuple[RecordedInput, ...]
    phenomenon: str
    paradigm: str
    id: str


@analysis(
    question="Does the model assign the acceptable sentence of a minimal pair the higher pseudo-log-likelihood?",
    special_tokens="Special tokens: in the model's input, never masked or scored.",
    citations=("warstadt2020", "salazar2020", "kauf2023"),
    annotations=("minimal pairs",),
    version=2,
    answers=True,
)
def minimal_pairs(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder,
    *,
    masking: Annotated[
        Masking,
        "What is masked together: one `token`, a token and the rest of its word (`word-l2r`, Kauf & Ivanova 2023), or "
        "the whole `word`.",
    ] = "token",
    seed: Annotated[int, "Random seed (bootstrap)."] = 0,
) -> Table:
    """Proportion of pairs whose acceptable sentence has the higher pseudo-log-likelihood, 0 to 1; chance is 0.5.

    Each non-special token is masked in turn, and the log-probabilities of the masked tokens are summed (`accuracy`) or
    averaged (`accuracy (mean log-probability)`, which does not favour the shorter sentence). A token of a long word is
    easily predicted from the tokens after it, which makes rare words too likely: `word-l2r` masks those too (kauf2023),
    `word` the whole word. Words are those of the tokeniser, as in minicons: BERT's splits contractions. A tie counts as
    wrong. Rows: all paradigms, each phenomenon, each paradigm; over several paradigms the mean over paradigms, whatever
    their sizes. Intervals are over pairs. `fewer tokens` prefers the sentence with fewer tokens (0.5 if both have
    equally many): a paradigm far from 0.5 there can be solved, or is made hard, by length alone. `untrained model` is
    one random initialisation: if all pairs of a paradigm differ in the same words, it prefers the same word in all of
    them, and is far from 0.5.
    """
    require_mlm(encoder, analysis_name="probes/minimal_pairs")
    pairs = _minimal_pairs(recording)
    row_masks = _row_masks(pairs)
    baselines = {
        "chance": {name: Estimates.exact(np.full(len(row_masks), 0.5)) for name in (SUM_ACCURACY, MEAN_ACCURACY)},
        "fewer tokens": {SUM_ACCURACY: _estimate_rows(row_masks, _is_shorter(pairs), pairs, seed)},
    }
    log_probs = {MODEL_SERIES: _log_probs(encoder, pairs, masking)}
    if randomised is not None and (untrained := randomised_encoder(encoder)) is not None:
        log_probs["untrained model"] = _log_probs(untrained, pairs, masking)
        baselines["untrained model"] = _accuracies(log_probs["untrained model"], pairs, row_masks, seed)
    table = Table(
        measures=_accuracies(log_probs[MODEL_SERIES], pairs, row_masks, seed),
        baselines=baselines,
        units=dict.fromkeys((SUM_ACCURACY, MEAN_ACCURACY), "proportion of pairs, 0 to 1"),
        row_names=tuple(row_masks),
    )
    return table.with_answers(lambda: _answers(pairs, log_probs))


def _answers(pairs: Sequence[_MinimalPair], log_probs: dict[str, FloatArray]) -> Iterator[Answer]:
    """The pseudo-log-likelihoods of both sentences of each pair."""
    for series, values in log_probs.items():
        for pair, (acceptable, unacceptable) in zip(pairs, values[0].tolist(), strict=True):
            yield {
                "item": pair.id,
                "text": " ".join(recorded_input.text.segments[0].text for recorded_input in pair.acceptable),
                "paradigm": f"{pair.phenomenon}/{pair.paradigm}",
                "series": series,
                "score (acceptable)": acceptable,
                "score (unacceptable)": unacceptable,
                "correct": float(acceptable > unacceptable),
            }


def _minimal_pairs(recording: Recording) -> list[_MinimalPair]:
    """Pairs with both sentences recorded; windows of a long sentence belong together."""
    inputs: dict[tuple[int, int], list[RecordedInput]] = defaultdict(list)
    for recorded_input in recording.inputs:
        inputs[recorded_input.example_index, recorded_input.input_index].append(recorded_input)
    pairs: list[_MinimalPair] = []
    for index, example in enumerate(recording.corpus):
        acceptable, unacceptable = inputs.get((index, 0)), inputs.get((index, 1))
        if example.kind == "minimal_pair" and acceptable and unacceptable:
            names = _phenomenon_and_paradigm(example)
            pairs.append(_MinimalPair(tuple(acceptable), tuple(unacceptable), *names, example.id or str(index + 1)))
    if not pairs:
        raise Refusal(
            f"No minimal pair of {recording.corpus.name} was recorded with both sentences",
            "pairs that fit the model's maximum length",
            "Use --overflow truncate, or other pairs",
        )
    return pairs


def _phenomenon_and_paradigm(example: Example) -> tuple[str, str]:
    """Phenomenon and paradigm, from BLiMP's `field/term/UID` or from `term/kind` of generated pairs."""
    source = example.factors.get("paradigm", example.source) or "pairs"
    *_, phenomenon, paradigm = ["", *source.split("/")] if "/" not in source else source.split("/")
    return phenomenon or paradigm, paradigm


def _row_masks(pairs: Sequence[_MinimalPair]) -> RowMasks:
    """The pairs of all paradigms, of each phenomenon, and of each paradigm."""
    masks: RowMasks = {ALL_PARADIGMS: np.ones(len(pairs), np.bool_)}
    phenomena = sorted({pair.phenomenon for pair in pairs})
    paradigms = sorted({(pair.phenomenon, pair.paradigm) for pair in pairs})
    if len(phenomena) > 1:
        masks |= {name: np.array([pair.phenomenon == name for pair in pairs]) for name in phenomena}
    if len(paradigms) > 1:
        for names in paradigms:
            masks["/".join(names)] = np.array([(pair.phenomenon, pair.paradigm) == names for pair in pairs])
    return masks


def _log_probs(encoder: Encoder, pairs: Sequence[_MinimalPair], masking: Masking) -> FloatArray:
    """(2, pair, 2) sums and means of log-probabilities of the acceptable and the unacceptable sentence."""
    sentences = [inputs for pair in pairs for inputs in (pair.acceptable, pair.unacceptable)]
    copies: list[MaskedCopy] = []
    owners: list[int] = []
    for owner, inputs in enumerate(sentences):
        for recorded_input, words in zip(inputs, tokeniser_words(encoder, inputs), strict=True):
            input_copies = list(masked_copies(recorded_input.tokens, masking, words))
            copies += input_copies
            owners += [owner] * len(input_copies)
    sums = np.bincount(owners, masked_log_probs(encoder, copies), len(sentences)).astype(np.float64)
    counts = np.bincount(owners, minlength=len(sentences))
    means = np.divide(sums, counts, out=np.full(len(sentences), np.nan), where=counts > 0)
    return np.stack([sums, means]).reshape(2, -1, 2)


def _accuracies(
    log_probs: FloatArray, pairs: Sequence[_MinimalPair], row_masks: RowMasks, seed: int
) -> dict[str, Estimates]:
    return {
        name: _estimate_rows(row_masks, _prefers_acceptable(scores), pairs, seed)
        for name, scores in zip((SUM_ACCURACY, MEAN_ACCURACY), log_probs, strict=True)
    }


def _prefers_acceptable(scores: FloatArray) -> FloatArray:
    """(pair,) 1 if the acceptable sentence scores higher, else 0; NaN if a sentence has no score."""
    return np.where(np.isnan(scores).any(1), np.nan, scores[:, 0] > scores[:, 1])


def _is_shorter(pairs: Sequence[_MinimalPair]) -> FloatArray:
    """(pair,) 1 if the acceptable sentence has fewer tokens, 0.5 if both have equally many, else 0."""
    n_acceptable, n_unacceptable = (
        np.array([sum(len(recorded_input.tokens) for recorded_input in inputs) for inputs in sentences])
        for sentences in zip(*((pair.acceptable, pair.unacceptable) for pair in pairs), strict=True)
    )
    return np.where(n_acceptable == n_unacceptable, 0.5, n_acceptable < n_unacceptable)


def _estimate_rows(row_masks: RowMasks, values: FloatArray, pairs: Sequence[_MinimalPair], seed: int) -> Estimates:
    """The mean over the paradigms of each row, with intervals over pairs."""
    paradigms = np.unique([f"{pair.phenomenon}/{pair.paradigm}" for pair in pairs], return_inverse=True)[1]
    is_measured = np.isfinite(values)
    sizes = np.bincount(paradigms, is_measured)
    weights = np.where(is_measured, 1 / sizes[paradigms].clip(min=1), 0.0)
    filled = np.where(is_measured, values, 0.0)
    # Only the pairs of the row are resampled, so that every resample has as many pairs.
    return Estimates.stack(
        [bootstrap_proportion(weights[mask] * filled[mask], weights[mask], seed=seed) for mask in row_masks.values()]
    )
