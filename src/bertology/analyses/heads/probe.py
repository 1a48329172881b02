"""How much of the dependency tree is in all heads' attention together (clark2019, section 5)?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.measures.division import Division, random_form
from bertology.measures.heads.arc_lessons import EDGES, MAPS, Lessons, Numbers, batched, gold_heads, lessons, scored
from bertology.measures.probes.options import Share, Train, TrainLimit
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording
from bertology.results.estimate import Estimates
from bertology.results.sampling import joined, pooled_over_sentences
from bertology.results.shapes import Table

if TYPE_CHECKING:
    from torch import nn

    from bertology.maths.arc_probe import ArcBatch

ATTENTION, WITH_WORDS, DISTANCES = "attention only", "attention and words", "distances and words"
ROWS = (ATTENTION, WITH_WORDS)
RATES = {ATTENTION: 5.0, WITH_WORDS: 1.0, DISTANCES: 0.5}
"""Multiples of the rate: single weights of small attention have far to go, a hidden layer must not go so fast."""

OFFSETS = tuple(step for step in range(-5, 6) if step)
NO_TABLE = "random-vectors:100"


@dataclass(frozen=True)
class _Settings:
    """How probes are trained."""

    seeds: tuple[int, ...]
    epochs: int
    rate: float
    hidden: int
    legacy: bool


@analysis(
    question="How much of the dependency tree is in all heads' attention together?",
    special="seen by the model; attention to and from [CLS] and [SEP] scores the ROOT, no word is compared with them",
    cites=("clark2019",),
    sites=(MAPS, EDGES),
    layers=("heads", "relations"),
)
def probe(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    words: Annotated[
        str, "static vectors as --model names them: glove:PATH, static:MODEL; empty: the model's own"
    ] = "",
    train: Train = "",
    train_limit: TrainLimit = 0,
    share: Share = 0.7,
    seeds: Annotated[int, "how many times each probe is trained, from different initial weights"] = 3,
    epochs: Annotated[int, "passes over the training sentences"] = 10,
    rate: Annotated[float, "Adam's rate at the start; it falls to zero"] = 0.02,
    hidden: Annotated[int, "hidden units of the baseline of distances and words"] = 256,
    legacy: Annotated[bool, "go with the vector of the word after a candidate, as the released code does"] = False,
    seed: Annotated[int, "seed of the first probe, of the division and of the bootstrap"] = 0,
) -> Table:
    """Unlabelled attachment score (UAS): share of words whose head is found, 0 to 1; punctuation does not count.

    A probe scores each word j as the head of word i by a weighted sum of all heads' attention from i to j and from j to
    i. `attention only` learns one weight a head and direction; in `attention and words` a weight is a linear function
    of the static vectors of both words. The ROOT is scored by the attention to and from [CLS] and [SEP], mixed by two
    learned weights. Attention to a split word is summed, from it averaged. A word is no candidate for its own head.
    Words without pieces, or whose head has none, do not count. Where no model is at hand that has input embeddings,
    and no `words` are named, words have random vectors.

    The baselines: each word's head is the next word (right-branching), or the word at the offset that is best in
    training; a hidden layer over both words' vectors and their distance; the same probes on the attention of the model
    with random weights (embeddings too, where Clark et al. keep those). The released code trains on one sentence at a
    time with Adam at 0.002 for one epoch of 36,160 sentences; here on about thirty at once, several times over, with
    larger rates that fall to zero and vectors scaled to a mean length of 1. It pairs each candidate with the vector of
    the word after it: that is `legacy`. Intervals of `UAS` are over test sentences, those of `UAS by seed` reach from
    the lowest seed to the highest. Maps are kept in float16: 2 bytes x layers x heads x words squared a sentence.
    """
    settings = _Settings(tuple(range(seed, seed + seeds)), epochs, rate, hidden, legacy)
    table, division = _table(words, encoder), Division(train, train_limit, share, seed)
    learned, tested = _parts(recording, encoder, table, division)
    found = _trained(learned, tested, settings, (*ROWS, DISTANCES)) | _rules(learned.entries, tested.entries)
    entries = learned.entries, tested.entries
    del learned, tested  # the maps, before those of the other model are made
    fresh: dict[str, Numbers] = {}
    if randomised is not None:
        fresh = _trained(*_parts(randomised, random_form(encoder), table, division), settings, ROWS)
    return _result(found, fresh, *entries, table.name, division.not_drawn(recording), seed)


def _table(words: str, encoder: Encoder | None) -> Encoder:
    from bertology.encoder.huggingface import HuggingFaceEncoder
    from bertology.encoder.load import load, static_form

    if not words and isinstance(encoder, HuggingFaceEncoder):
        return static_form(encoder)
    return load(words or NO_TABLE)


def _parts(
    recording: Recording, encoder: Encoder | None, table: Encoder, division: Division
) -> tuple[Lessons, Lessons]:
    """What to train on and what to test on, with vectors of a mean length of 1 in training."""
    parts = division.parts(recording, encoder, (MAPS, EDGES), purpose="heads/probe")
    first, second = (lessons(own, table, places) for own, places in parts)
    if not first.entries or not second.entries:
        raise Refusal(
            f"{recording.corpus.name} has too few sentences with a tree to train on some and test on others "
            f"({len(first.entries)} and {len(second.entries)})",
            "at least one sentence for each",
            "Use a larger treebank, or give another one with --train",
        )
    length = float(np.concatenate([np.linalg.norm(vectors, axis=1) for vectors in first.vectors]).mean()) or 1.0
    first, second = (replace(part, vectors=tuple(v / length for v in part.vectors)) for part in (first, second))
    return first, second


def _trained(learned: Lessons, tested: Lessons, settings: _Settings, names: Sequence[str]) -> dict[str, Numbers]:
    """(seed, sentence) how many heads each probe finds in each test sentence."""
    from bertology.maths.arc_probe import predict, train

    batches = [batch for _, batch in batched(learned)]
    tests = batched(tested)
    found: dict[str, Numbers] = {}
    for name in names:
        model = _probe(name, batches[0], settings)
        train(model, batches, epochs=settings.epochs, rate=RATES[name] * settings.rate, seed=settings.seeds[0])
        found[name] = np.zeros((len(settings.seeds), len(tested.entries)))
        for some, batch in tests:
            right = (predict(model, batch) == batch.gold).numpy()
            for row, place in enumerate(some):
                counted = scored(tested.entries[place])
                found[name][:, place] = right[:, row, : len(counted)][:, counted].sum(1)
    return found


def _probe(name: str, batch: ArcBatch, settings: _Settings) -> nn.Module:
    from bertology.maths.arc_probe import AttentionProbe, AttentionWordsProbe, DistanceProbe

    maps, width = batch.maps.shape[2], batch.vectors.shape[2]
    if name == ATTENTION:
        return AttentionProbe(maps, settings.seeds)
    if name == WITH_WORDS:
        return AttentionWordsProbe(maps, width, settings.seeds, shifted=settings.legacy)
    return DistanceProbe(width, settings.hidden, settings.seeds, shifted=settings.legacy)


def _rules(learned: Sequence[Entry], tested: Sequence[Entry]) -> dict[str, Numbers]:
    """(1, sentence) how many heads right-branching, and the offset that is best in training, find."""

    def hits(entries: Sequence[Entry], step: int) -> Numbers:
        return np.array([_at_offset(entry, step) for entry in entries], np.float64)

    best = max(OFFSETS, key=lambda step: hits(learned, step).sum())
    return {"right-branching": hits(tested, 1)[None], "best offset": hits(tested, best)[None]}


def _at_offset(entry: Entry, step: int) -> int:
    gold = gold_heads(entry)
    return int((scored(entry) & (gold == np.arange(1, len(gold) + 1) + step)).sum())


def _result(
    found: dict[str, Numbers],
    fresh: dict[str, Numbers],
    learned: Sequence[Entry],
    tested: Sequence[Entry],
    table: str,
    not_drawn: str,
    seed: int,
) -> Table:
    counted = np.array([scored(entry).sum() for entry in tested], np.float64)

    def over(names: Sequence[str], hits: dict[str, Numbers]) -> dict[str, Estimates]:
        pooled = [pooled_over_sentences(hits[name].mean(0), counted, seed=seed) for name in names]
        return {"UAS": joined(pooled), "UAS by seed": joined([_by_seed(hits[name], counted) for name in names])}

    baselines = {name: over((name, name), found) for name in ("right-branching", "best offset", DISTANCES)}
    if fresh:
        baselines["random weights"] = over(ROWS, fresh)
    words = sum(int((gold_heads(entry) >= 0).sum()) for entry in learned)
    sizes = f"trained on {words} words of {len(learned)} sentences, "
    sizes += f"tested on {counted.sum():.0f} of {len(tested)}{not_drawn}"
    return Table(
        measures=over(ROWS, found),
        baselines=baselines,
        units={"UAS": "share of words, 0 to 1", "UAS by seed": "share of words, from the lowest seed to the highest"},
        rows_named=ROWS,
        notes={ATTENTION: sizes, WITH_WORDS: f"{sizes}; vectors of {table}"},
    )


def _by_seed(hits: Numbers, counted: Numbers) -> Estimates:
    total = counted.sum()
    scores = hits.sum(1) / total if total else np.full(len(hits), np.nan)
    low, value, high = (np.array(summary) for summary in (scores.min(), scores.mean(), scores.max()))
    return Estimates(value=value, low=low, high=high, n=np.array(len(scores) if total else 0))
