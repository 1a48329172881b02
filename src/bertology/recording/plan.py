"""How a recording is made: its configuration, and the plan of inputs, batches and shards, from lengths alone."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import accumulate, chain, islice, pairwise, repeat, takewhile
from threading import Lock
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.encoder.token_batch import RecordedInput, TokenBatch
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.lazy import torch
from bertology.number_ranges import COUNT, SEED, check_fields
from bertology.recording.overflow import Overflow, apply_overflow
from bertology.recording.recording import Recording

TOKENISER_BATCH_SIZE = 256
SHARD_BYTES = 64 * 2**20
"""Maximum size of a shard of attention."""
SHARD_INPUTS = 512
"""Maximum number of inputs in a shard; sites can store as much for a short input as for a long one."""

# Measured on two CPU cores: larger batches gain nothing there and pad more. A GPU needs them large.
CPU_BATCH_TOKENS = 1024
DEVICE_BATCH_TOKENS = 8192
LARGE_DEVICE_BYTES, LARGE_DEVICE_BATCH_TOKENS = 40 * 2**30, 32768
# A batch with at least MIN_FILL of its tokens is closed if the next input would cause more than MAX_PADDING padding.
MIN_FILL = 0.25
MAX_PADDING = 0.05

MIN_SAMPLE_SIZE, MAX_SAMPLE_SIZE = 10, 60
WEIGHTS_PER_LAYER = 12
"""Weights of a transformer layer, in squares of its width."""
WORK_PER_SECOND = 1e10
"""Weights times tokens that one core multiplies in a second, in batches of sentences."""


@dataclass(frozen=True)
class RecordingConfig:
    """How to record. All fields but `tokens_per_batch` can change the numbers and are part of the recording's key.

    `overflow` says what happens to inputs longer than `max_length` (None: the encoder's limit); `half_precision` stores
    raw sites in float16; `objective`, one of `objectives.OBJECTIVES`, and `seed` are for gradient sites;
    `tokens_per_batch` limits a batch, padding included (None: chosen by device).
    """

    overflow: Overflow = "error"
    max_length: Annotated[int | None, COUNT] = None
    half_precision: bool = False
    objective: str = "auto"
    seed: Annotated[int, SEED] = 0
    tokens_per_batch: Annotated[int | None, COUNT] = None

    def __post_init__(self) -> None:
        check_fields(self)

    def key_fields(self) -> dict[str, Any]:
        """The fields that the numbers depend on."""
        return {name: value for name, value in asdict(self).items() if name != "tokens_per_batch"}


@dataclass(frozen=True)
class RecordingPlan:
    """The inputs in corpus order, and shards of batches of input indices, sorted by length."""

    inputs: tuple[RecordedInput, ...]
    shards: tuple[tuple[tuple[int, ...], ...], ...]
    counts: dict[str, int]

    @property
    def order(self) -> list[list[int]]:
        """The input indices of each shard in the order in which they are recorded."""
        return [[index for batch in shard for index in batch] for shard in self.shards]

    @property
    def n_tokens(self) -> int:
        """Number of tokens of all inputs."""
        return self.count_tokens(range(len(self.shards)))

    def count_tokens(self, shards: Iterable[int]) -> int:
        """Number of tokens of the inputs of some shards."""
        return sum(len(self.inputs[i].tokens) for shard in shards for batch in self.shards[shard] for i in batch)

    def batches(self) -> Iterator[tuple[int, ...]]:
        """The batches of all shards."""
        return chain.from_iterable(self.shards)


def make_plan(encoder: Encoder, corpus: Corpus, config: RecordingConfig) -> RecordingPlan:
    """Tokenise the corpus, apply `config.overflow` to long inputs, and form batches of similar length."""
    counts: Counter[str] = Counter()
    inputs = list(tokenise_corpus(encoder, corpus, config, counts))
    if not inputs:
        raise no_input_refusal(corpus, counts)
    count_alignment(inputs, counts)
    lengths = [len(recorded.tokens) for recorded in inputs]
    max_tokens = config.tokens_per_batch or recording_tokens_per_batch(encoder.device)
    max_cells = max(1, SHARD_BYTES // (4 * max(1, encoder.layers * encoder.heads)))
    shards = tuple(_group_shards(list(length_batches(lengths, max_tokens)), lengths, max_cells))
    return RecordingPlan(tuple(inputs), shards, {name: count for name, count in counts.items() if count})


def recording_tokens_per_batch(device: str) -> int:
    """The maximum number of tokens of a batch without gradients: launching a pass takes as long as many tokens do."""
    if device.startswith("cuda") and torch.cuda.get_device_properties(device).total_memory >= LARGE_DEVICE_BYTES:
        return LARGE_DEVICE_BATCH_TOKENS
    return default_tokens_per_batch(device)


def default_tokens_per_batch(device: str) -> int:
    """The maximum number of tokens of a batch, padding included."""
    return CPU_BATCH_TOKENS if device.startswith("cpu") else DEVICE_BATCH_TOKENS


def count_alignment(inputs: Sequence[RecordedInput], counts: Counter[str]) -> None:
    """Count words, and tokens and words that are not aligned one to one."""
    if not inputs:
        return
    n_words = np.array([recorded.tokens.n_words for recorded in inputs])
    word_ids = [recorded.tokens.word_ids for recorded in inputs]
    shifted = np.concatenate(word_ids) + np.repeat(np.cumsum(n_words) - n_words, [len(ids) for ids in word_ids])
    in_word = np.concatenate(word_ids) >= 0
    is_special = np.concatenate([recorded.tokens.special_kinds for recorded in inputs]) != SpecialToken.NONE
    tokens_per_word = np.bincount(shifted[in_word], minlength=int(n_words.sum()))
    counts["words"] += int(n_words.sum())
    counts["split words"] += int((tokens_per_word > 1).sum())
    counts["words without tokens"] += int((tokens_per_word == 0).sum())
    counts["tokens across word boundaries"] += sum(recorded.tokens.n_straddling for recorded in inputs)
    counts["unaligned tokens"] += int((~in_word & ~is_special).sum())
    counts["unknown tokens ([UNK])"] += sum(recorded.tokens.n_unknown for recorded in inputs)


def tokenise_corpus(
    encoder: Encoder, corpus: Corpus, config: RecordingConfig, counts: Counter[str]
) -> Iterator[RecordedInput]:
    """The inputs of a corpus, with `config.overflow` applied to long ones and counted in `counts`."""
    limit = min(encoder.max_length, config.max_length or encoder.max_length)
    for recorded in _tokenised_inputs(encoder, corpus):
        counts["inputs"] += 1
        if not len(recorded.tokens):
            counts["empty inputs skipped"] += 1
        elif len(recorded.tokens) <= limit:
            yield recorded
        else:
            yield from apply_overflow(encoder, recorded, limit, config.overflow, counts)


def no_input_refusal(corpus: Corpus, counts: Counter[str]) -> Refusal:
    """The refusal of a corpus without inputs."""
    return Refusal(
        f"{corpus.name} has no input to record ({dict(counts)})",
        "at least one input that fits the encoder",
        "Use --overflow truncate or --overflow window, or another corpus",
    )


def _tokenised_inputs(encoder: Encoder, corpus: Corpus) -> Iterator[RecordedInput]:
    """The inputs of a corpus; the tokeniser, which needs no Python, works on one chunk while another one is aligned."""
    reading = Lock()

    def tokenise(start: int, end: int) -> list[RecordedInput]:
        with reading:  # one after the other, as stored examples are read from one file
            examples = corpus.examples[start:end]
        texts = [
            (start + number, input_index, text)
            for number, example in enumerate(examples)
            for input_index, text in enumerate(example.text_inputs)
        ]
        tokenised = encoder.tokenise([text for _, _, text in texts])
        return [
            RecordedInput(example_index, input_index, 0, text, tokens)
            for (example_index, input_index, text), tokens in zip(texts, tokenised, strict=True)
        ]

    if len(corpus) <= TOKENISER_BATCH_SIZE:  # nothing to align meanwhile, and a thread takes memory
        yield from tokenise(0, len(corpus))
        return
    # The first chunks are small, so that a pass can begin soon.
    sizes = chain((TOKENISER_BATCH_SIZE // 4, TOKENISER_BATCH_SIZE // 2), repeat(TOKENISER_BATCH_SIZE))
    starts = takewhile(lambda start: start < len(corpus), accumulate(sizes, initial=0))
    chunks = pairwise(chain(starts, [len(corpus)]))
    with ThreadPoolExecutor(2) as executor:
        futures = deque(executor.submit(tokenise, *chunk) for chunk in islice(chunks, 3))
        try:
            while futures:
                inputs = futures.popleft().result()
                futures.extend(executor.submit(tokenise, *chunk) for chunk in islice(chunks, 1))
                yield from inputs
        finally:
            for future in futures:
                future.cancel()


def length_batches(lengths: Sequence[int], max_tokens: int) -> Iterator[tuple[int, ...]]:
    """Group inputs of similar length, sorted by length, into batches of at most `max_tokens`, padding included.

    Batches are tuples of indices into `lengths`.
    """
    batch: list[int] = []
    n_tokens = 0
    for index in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        padded = lengths[index] * (len(batch) + 1)
        is_wasteful = n_tokens >= max_tokens * MIN_FILL and padded > (n_tokens + lengths[index]) * (1 + MAX_PADDING)
        if batch and (padded > max_tokens or is_wasteful):
            yield tuple(batch)
            batch, n_tokens = [], 0
        batch.append(index)
        n_tokens += lengths[index]
    yield tuple(batch)


def _group_shards(
    batches: Sequence[tuple[int, ...]], lengths: Sequence[int], max_cells: int
) -> Iterator[tuple[tuple[int, ...], ...]]:
    shard: list[tuple[int, ...]] = []
    n_cells = n_inputs = 0
    for batch in batches:
        batch_cells = sum(lengths[index] ** 2 for index in batch)
        if shard and (n_cells + batch_cells > max_cells or n_inputs + len(batch) > SHARD_INPUTS):
            yield tuple(shard)
            shard, n_cells, n_inputs = [], 0, 0
        shard.append(batch)
        n_cells += batch_cells
        n_inputs += len(batch)
    yield tuple(shard)


def token_batches(
    recording: Recording, encoder: Encoder, *, sample_size: int = 0, seed: int = 0
) -> Iterator[tuple[list[int], TokenBatch]]:
    """Batches of inputs of similar length on the encoder's device, with their indices in the recording.

    With a `sample_size`, of a random sample of the inputs.
    """
    sample = sample_inputs(recording, sample_size, seed)
    lengths = [len(recording.inputs[index].tokens) for index in sample]
    for batch in length_batches(lengths, default_tokens_per_batch(encoder.device)):
        indices = [sample[position] for position in batch]
        yield indices, TokenBatch([recording.inputs[index] for index in indices], encoder.device)


def affordable_sample_size(
    encoder: Encoder, lengths: ArrayLike, n_passes: ArrayLike, *, seconds: float, maximum: int = MAX_SAMPLE_SIZE
) -> int:
    """The number of inputs, 10 or more, whose passes take one core about this long.

    `lengths` are the numbers of tokens of some inputs, `n_passes` how many passes each of them needs. The size depends
    only on these, not on the machine, so that the same inputs are analysed everywhere.
    """
    tokens = np.asarray(lengths, np.float64) * np.asarray(n_passes, np.float64)
    work_per_input = WEIGHTS_PER_LAYER * encoder.layers * encoder.width**2 * (tokens.mean() if tokens.size else 0.0)
    affordable = seconds * WORK_PER_SECOND / work_per_input if work_per_input else maximum
    return int(min(maximum, max(MIN_SAMPLE_SIZE, affordable)))


def sample_inputs(
    recording: Recording, sample_size: int, seed: int, candidate_indices: Sequence[int] | None = None
) -> list[int]:
    """Indices of a random sample of inputs (0: all), from all or from `candidate_indices`.

    The choice depends on the tokens and the seed, not on the order of the inputs.
    """
    indices = list(range(len(recording)) if candidate_indices is None else candidate_indices)
    if not sample_size or sample_size >= len(indices):
        return indices

    def sort_key(index: int) -> bytes:
        ids = recording.inputs[index].tokens.ids
        return hashlib.sha256(f"{seed} {list(ids)}".encode()).digest()

    return sorted(sorted(indices, key=sort_key)[:sample_size])
