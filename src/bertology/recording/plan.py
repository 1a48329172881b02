"""Which inputs are recorded, in which batches and shards: decided before the first forward pass, from lengths alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bertology.corpus.corpus import Corpus, Input
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.recording.entry import Entry
from bertology.recording.policy import Policy
from bertology.recording.shorten import shortened

TOKENISED_AT_ONCE = 1024
SHARD_BYTES = 64 * 2**20
"""How large a shard of attention maps may be."""
SHARD_INPUTS = 512
"""What sites keep of an input may be as much for a short one as for a long one: a shard has no more of them."""

# Measured on two CPU cores: larger batches gain nothing there and pad more. An accelerator wants them large.
CPU_BATCH_PIECES = 1024
DEVICE_BATCH_PIECES = 8192
# A batch is closed early, once it is this full, where one more input would mean this much padding.
FULL_ENOUGH = 0.25
PADDING = 0.05


@dataclass(frozen=True)
class Plan:
    """The entries in corpus order, and shards of batches of entry indices in order of length."""

    entries: tuple[Entry, ...]
    shards: tuple[tuple[tuple[int, ...], ...], ...]
    counts: dict[str, int]

    @property
    def order(self) -> list[list[int]]:
        """The entries of each shard in the order in which they are recorded."""
        return [[index for batch in shard for index in batch] for shard in self.shards]


def make_plan(encoder: Encoder, corpus: Corpus, policy: Policy) -> Plan:
    """Tokenise the corpus, shorten what is too long, and arrange it in batches of similar length."""
    limit = min(encoder.max_pieces, policy.max_pieces or encoder.max_pieces)
    counts: Counter[str] = Counter()
    entries: list[Entry] = []
    for entry in _tokenised(encoder, corpus):
        counts["inputs"] += 1
        if not len(entry.pieces):
            counts["empty inputs skipped"] += 1
        elif len(entry.pieces) <= limit:
            entries.append(entry)
        else:
            entries.extend(shortened(encoder, entry, limit, policy.long, counts))
    if not entries:
        raise Refusal(
            f"No input of {corpus.name} is left to record ({dict(counts)})",
            "at least one input that fits the encoder",
            "Use --long truncate or --long window, or another corpus",
        )
    count_alignment(entries, counts)
    lengths = [len(entry.pieces) for entry in entries]
    budget = policy.batch_pieces or pieces_at_once(encoder.device)
    cells = max(1, SHARD_BYTES // (4 * max(1, encoder.layers * encoder.heads)))
    shards = tuple(_shards(list(batches(lengths, budget)), lengths, cells))
    return Plan(tuple(entries), shards, {name: count for name, count in counts.items() if count})


def pieces_at_once(device: str) -> int:
    """How many pieces a batch may have, padding included, where the policy does not say."""
    return CPU_BATCH_PIECES if device.startswith("cpu") else DEVICE_BATCH_PIECES


def count_alignment(entries: Sequence[Entry], counts: Counter[str]) -> None:
    """Count the words of the entries, and what did not align one to one."""
    for entry in entries:
        counts["words"] += entry.pieces.words
        counts["split words"] += entry.pieces.split
        counts["vanished words"] += len(entry.pieces.vanished)
        counts["straddling pieces"] += entry.pieces.straddling
        counts["unaligned pieces"] += entry.pieces.unaligned
        counts["unknown pieces"] += entry.pieces.unknown


def _tokenised(encoder: Encoder, corpus: Corpus) -> Iterator[Entry]:
    places: list[tuple[int, int, Input]] = []
    for number, item in enumerate(corpus):
        places.extend((number, variant, shown) for variant, shown in enumerate(item.inputs))
    for start in range(0, len(places), TOKENISED_AT_ONCE):
        some = places[start : start + TOKENISED_AT_ONCE]
        for (number, variant, shown), pieces in zip(some, encoder.tokenise([p[2] for p in some]), strict=True):
            yield Entry(number, variant, 0, shown, pieces)


def batches(lengths: Sequence[int], budget: int) -> Iterator[tuple[int, ...]]:
    """Places of inputs of similar length, in order of length, at most `budget` pieces a batch with padding."""
    batch: list[int] = []
    real = 0
    for index in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        padded = lengths[index] * (len(batch) + 1)
        wasteful = real >= budget * FULL_ENOUGH and padded > (real + lengths[index]) * (1 + PADDING)
        if batch and (padded > budget or wasteful):
            yield tuple(batch)
            batch, real = [], 0
        batch.append(index)
        real += lengths[index]
    yield tuple(batch)


def _shards(
    batches: Sequence[tuple[int, ...]], lengths: Sequence[int], cells: int
) -> Iterator[tuple[tuple[int, ...], ...]]:
    shard: list[tuple[int, ...]] = []
    filled = inputs = 0
    for batch in batches:
        size = sum(lengths[index] ** 2 for index in batch)
        if shard and (filled + size > cells or inputs + len(batch) > SHARD_INPUTS):
            yield tuple(shard)
            shard, filled, inputs = [], 0, 0
        shard.append(batch)
        filled += size
        inputs += len(batch)
    yield tuple(shard)
