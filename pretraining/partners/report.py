"""Numbers of a partner's model card, always measured on the stored files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from bertology.corpus.read import load_corpus
from bertology.encoder.delta_checkpoint import load_delta
from bertology.encoder.huggingface_loading import load_directory
from bertology.estimates.metrics import Counts, bootstrap_score
from bertology.training.encoded_examples import EncodedExample
from pretraining.partners.loop import RUN
from pretraining.partners.measure import Logits, count, predict
from pretraining.partners.pack import Pack
from pretraining.partners.similarity import layer_similarity
from pretraining.partners.task import trained


@dataclass(frozen=True)
class Kept:
    """What storing left of a model on all development parts: logits in nats, answers as shares, size in bytes."""

    rank: int
    size: int
    answers: int
    largest_logit_change: float
    typical_logit_change: float
    logit_spread: float
    same_answers: float


def kept(folder: Path, rank: int, before: Sequence[Logits], after: Sequence[Logits]) -> Kept:
    """Compare the logits of a stored partner with those of the model it was stored from."""
    one, other = (np.concatenate([logits.reshape(-1, logits.shape[-1]) for logits in many]) for many in (before, after))
    return Kept(
        rank=rank,
        size=sum(file.stat().st_size for file in folder.iterdir()),
        answers=len(one),
        largest_logit_change=float(np.abs(one - other).max()),
        typical_logit_change=float(np.median(np.abs(one - other))),
        logit_spread=float(one.std()),
        same_answers=float((one.argmax(-1) == other.argmax(-1)).mean()),
    )


Predictions = dict[str, list[Logits]]


def predictions(model: nn.Module, pack: Pack) -> Predictions:
    """The logits of every development part."""
    return {part: predict(model, examples) for part, examples in pack.dev.items()}


def scores(pack: Pack, found: Predictions) -> dict[str, Any]:
    """A figure for each development part, and for each kind of example in it where they have kinds."""
    figures: dict[str, Any] = {}
    for part, examples in pack.dev.items():
        counts = count(examples, found[part], pack.labels, tags=pack.tags)
        for kind in ("", *sorted({example.phenomenon for example in examples} - {""})):
            rows = _of_kind(examples, kind)
            name = f"{part}: {kind}" if kind else part
            figures[name] = asdict(bootstrap_score(Counts(counts.correct[rows], counts.total[rows])))
    return figures


def report(
    pack: Pack, base: Path, partner: Path, runs: Sequence[Path], shipped: Path, *, device: str
) -> dict[str, Any]:
    """All figures of the card: the stored partner, the runs by seed, the baselines, and how far each layer moved."""
    encoder = load_delta(base, partner)
    similarity = layer_similarity(load_directory(base), encoder, load_corpus("english"))
    after = predictions(encoder.model.to(device), pack)
    before = {run.name: predictions(trained(pack, base, run).to(device), pack) for run in runs}
    rank = int(encoder.model.config.difference["rank"])
    return {
        "sizes": {part: len(examples) for part, examples in pack.parts.items()},
        "shipped": scores(pack, after),
        "kept": asdict(kept(partner, rank, _all(before[shipped.name]), _all(after))),
        "runs": {run: scores(pack, found) for run, found in before.items()},
        "similarity": similarity,
        "training": {run.name: json.loads((run / RUN).read_text("utf-8")) for run in runs},
        **pack.facts,
    }


def _of_kind(examples: Sequence[EncodedExample], kind: str) -> list[int]:
    return [place for place, example in enumerate(examples) if kind in {"", example.phenomenon}]


def _all(found: Predictions) -> list[Logits]:
    return [logits for some in found.values() for logits in some]
