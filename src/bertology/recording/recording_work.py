"""The work of a recording, estimated from the lengths of the texts and a short measured pass, before it is planned."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter, process_time

import numpy as np

from bertology.arrays import Array
from bertology.corpus.corpus import Corpus
from bertology.corpus.text_examples import TextExamples
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.recording.plan import WEIGHTS_PER_LAYER, WORK_PER_SECOND, RecordingConfig
from bertology.recording.recording import Recording
from bertology.recording.sites import TOKEN_AXES, WORD_AXES, RawSite, Site, needs_gradient
from bertology.work_estimate import SMALL_BYTES, WorkEstimate

MAX_COUNTED_EXAMPLES = 100_000
"""Of larger corpora, the words of so many examples are counted, evenly spaced."""
MAX_MEASURED_EXAMPLES = 64
MEASURED_WORDS = 40, 2_000
"""At least and at most so many words are in the measured pass, as many as one core needs about a second for."""
MEASURED_BATCH_TOKENS = 256
DEVICE_WORK_PER_SECOND = 2e13
"""What a GPU multiplies in a second in half precision; only to tell what is not worth measuring."""
FEW_POSITIONS = 4
"""Positions of an axis without labels that grows with neither tokens nor words; only for what is not measured."""
SMALL_SECONDS = 6.0
"""What takes less, by counts alone, is not measured."""
TOKENS_PER_WORD = 2.0
"""More than tokenisers make of a word of most languages; only for what is not measured."""
GRADIENT_PASSES = 3
"""A backward pass takes about as long as two forward passes."""


@dataclass(frozen=True)
class InputLengths:
    """The numbers of tokens of inputs as they will be recorded; each stands for `counts` inputs of this length."""

    tokens: Array
    counts: Array

    def work(self, encoder: Encoder) -> float:
        """Multiplications of a forward pass: of the weights with every token, and of tokens with each other."""
        per_token = WEIGHTS_PER_LAYER * encoder.layers * encoder.width**2 + encoder.width
        per_pair = 2 * encoder.layers * encoder.width
        return per_token * self.sum_of_powers(1) + per_pair * self.sum_of_powers(2)

    def sum_of_powers(self, exponent: int) -> float:
        """The sum over all inputs of a power of their length."""
        return float((self.counts * self.tokens**exponent).sum())


def estimate_recording(
    encoder: Encoder, corpus: Corpus, sites: Sequence[Site], config: RecordingConfig
) -> WorkEstimate:
    """Seconds on this machine, and bytes of all sites; of small work only seconds, from counts alone."""
    words, scale = count_words_per_input(corpus)
    if not words.size:
        return WorkEstimate()
    limit = min(encoder.max_length, config.max_length or encoder.max_length)
    rough_lengths = _after_overflow(words * TOKENS_PER_WORD + 2, scale, limit, config)
    is_cpu = encoder.device.startswith("cpu")
    n_passes = GRADIENT_PASSES if any(needs_gradient(site) for site in sites) else 1
    rough = WorkEstimate(
        n_passes * rough_lengths.work(encoder) / (WORK_PER_SECOND if is_cpu else DEVICE_WORK_PER_SECOND),
        sum(_rough_bytes(site, encoder, rough_lengths) for site in sites),
    )
    if rough.seconds < SMALL_SECONDS and rough.n_bytes < SMALL_BYTES:
        return WorkEstimate(rough.seconds)
    try:
        recording, seconds = _measure(encoder, corpus, sites, config)
    except Refusal:  # no text of the sample can be recorded; whether any can is not known yet
        return WorkEstimate(rough.seconds)
    n_tokens = sum(len(recorded.tokens) for recorded in recording.inputs)
    n_words = max(1, sum(recorded.tokens.n_words for recorded in recording.inputs))
    tokens_per_word = n_tokens / n_words
    measured = _lengths([len(recorded.tokens) for recorded in recording.inputs])
    lengths = _after_overflow(np.maximum(1, words * tokens_per_word), scale, limit, config)
    return WorkEstimate(
        seconds * lengths.work(encoder) / measured.work(encoder),
        sum(_site_bytes(site, recording, lengths, tokens_per_word) for site in sites),
    )


def count_words_per_input(corpus: Corpus) -> tuple[Array, float]:
    """The number of words of each input, of evenly spaced examples, and how many inputs each stands for."""
    step = max(1, math.ceil(len(corpus) / MAX_COUNTED_EXAMPLES))
    if isinstance(corpus.examples, TextExamples):
        words = corpus.examples.estimate_words(step)
        return words, len(corpus) / max(1, len(words))
    counted = corpus.examples[::step]
    words = np.array([len(text.words) for example in counted for text in example.text_inputs], np.float64)
    return words, len(corpus) / max(1, len(counted))


def _lengths(tokens: Sequence[int]) -> InputLengths:
    return InputLengths(np.array(tokens, np.float64), np.ones(len(tokens)))


def _after_overflow(tokens: Array, scale: float, limit: int, config: RecordingConfig) -> InputLengths:
    """The lengths after long inputs are skipped, truncated or split into windows that overlap by half."""
    counts = np.full(len(tokens), scale)
    is_long = tokens > limit
    if config.overflow == "skip":
        counts[is_long] = 0.0
    elif config.overflow == "window":
        counts[is_long] *= 1 + np.ceil((tokens[is_long] - limit) / (limit / 2))
    return InputLengths(np.minimum(tokens, limit), counts)


def _rough_bytes(site: Site, encoder: Encoder, lengths: InputLengths) -> float:
    """The bytes of a reduced site, or those of an attention pattern for any other site."""
    per_layer = 4 * max(1, encoder.layers * encoder.heads)
    if isinstance(site, RawSite):
        return per_layer * lengths.sum_of_powers(2)
    fixed = [axis for axis in site.axes if axis not in TOKEN_AXES | WORD_AXES]
    n_positions = max(len(site.labels), FEW_POSITIONS ** len(fixed))
    return per_layer * n_positions * lengths.sum_of_powers(len(site.axes) - len(fixed))


def _measure(
    encoder: Encoder, corpus: Corpus, sites: Sequence[Site], config: RecordingConfig
) -> tuple[Recording, float]:
    """A recording of a small sample in memory, and the seconds of its pass, without those of the first batch ever.

    The pass of a busy machine takes as long by the clock as other processes want. On a CPU it is therefore taken to
    need no more than the processor time of its threads, which other load does not change.
    """
    from bertology.recording.recorder import record

    weights = max(1, WEIGHTS_PER_LAYER * encoder.layers * encoder.width**2)
    least, most = MEASURED_WORDS
    sample = _sample_words(corpus, min(most, max(least, WORK_PER_SECOND / weights)))
    batch_tokens = MEASURED_BATCH_TOKENS if encoder.device.startswith("cpu") else config.tokens_per_batch
    sample_config = replace(config, overflow="truncate", tokens_per_batch=batch_tokens)
    record(encoder, sample[:1], sites, config=sample_config, max_hours=None)
    times: list[tuple[float, float]] = []

    def note_time(done: int, total: int) -> None:
        times.append((perf_counter(), process_time()))

    recording = record(encoder, sample, sites, config=sample_config, progress=note_time, max_hours=None)
    clock, processor = (end - start for start, end in zip(times[0], times[-1], strict=True))
    return recording, min(clock, processor) if encoder.device.startswith("cpu") else clock


def _sample_words(corpus: Corpus, n_words: float) -> Corpus:
    """Evenly spaced examples with about this many words."""
    step = max(1, len(corpus) // MAX_MEASURED_EXAMPLES)
    total, end = 0, 0
    candidates = corpus.examples[::step]
    while end < len(candidates) and total < n_words:
        total += sum(len(text.words) for text in candidates[end].text_inputs)
        end += 1
    return replace(corpus, examples=candidates[:end])


def _site_bytes(site: Site, recording: Recording, lengths: InputLengths, tokens_per_word: float) -> float:
    """The bytes of a site: axes of tokens and words grow with the inputs, the others are those of the sample."""
    axes = site.axes if isinstance(site, RawSite) else ("layer", "head", *site.axes)
    n_tokens, n_words = (sum(axis in kind for axis in axes) for kind in (TOKEN_AXES, WORD_AXES))
    arrays = [np.asarray(array) for array in recording[site]]
    growing = TOKEN_AXES | WORD_AXES
    fixed = [math.prod(n for n, axis in zip(array.shape, axes, strict=True) if axis not in growing) for array in arrays]
    per_cell = arrays[0].itemsize * float(np.mean(fixed))
    return per_cell * lengths.sum_of_powers(n_tokens + n_words) / tokens_per_word**n_words
