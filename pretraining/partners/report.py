"""Which rank is enough, and what can be claimed of a partner? Always measured on the stored files, as they load."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bertology.corpus.builtin import corpus_named
from bertology.encoder.difference import load_difference
from bertology.encoder.huggingface import load_directory
from pretraining.partners.data import majority
from pretraining.partners.loop import BEST
from pretraining.partners.measure import (
    Counts,
    Logits,
    by_lookup,
    by_words,
    constant,
    count,
    count_names,
    figure,
    predict,
)
from pretraining.partners.similarity import layer_similarity
from pretraining.partners.store import store
from pretraining.partners.task import Task, start

RANKS = (4, 8, 16, 24, 32)
SAME = 0.99
"""The share of answers that a stored difference must leave as they were."""


@dataclass(frozen=True)
class Kept:
    """What storing left of a model on some examples: logits in nats, answers as shares."""

    rank: int
    size: int
    largest_logit_change: float
    typical_logit_change: float
    logit_spread: float
    same_answers: float
    score: float


def trained(task: Task, base: Path, run: Path) -> Any:
    """The model that a run left, with its best weights."""
    model = start(task, base, seed=0, fresh="fresh" in run.name)
    model.load_state_dict(torch.load(run / BEST, map_location="cpu", weights_only=True))
    return model.eval()


def kept(folder: Path, rank: int, before: Sequence[Logits], after: Sequence[Logits], score: float) -> Kept:
    """Compare the logits of a stored partner with those of the model it was stored from."""
    one, other = (np.concatenate([logits.reshape(-1, logits.shape[-1]) for logits in many]) for many in (before, after))
    return Kept(
        rank=rank,
        size=sum(file.stat().st_size for file in folder.iterdir()),
        largest_logit_change=float(np.abs(one - other).max()),
        typical_logit_change=float(np.median(np.abs(one - other))),
        logit_spread=float(one.std()),
        same_answers=float((one.argmax(-1) == other.argmax(-1)).mean()),
        score=score,
    )


def choose_rank(task: Task, model: Any, base: Path, ranks: Sequence[int] = RANKS) -> list[Kept]:
    """Each rank judged on the part that training was stopped by, up to the first that keeps enough answers."""
    before = predict(model, task.stop)
    tried: list[Kept] = []
    for rank in ranks:
        with tempfile.TemporaryDirectory() as folder:
            store(model, base, Path(folder), rank=rank)
            after = predict(load_difference(base, Path(folder)).model, task.stop)
            score = count(task.stop, after, task.material.labels).value
            tried.append(kept(Path(folder), rank, before, after, score))
        if tried[-1].same_answers >= SAME:
            break
    return tried


def scores(task: Task, logits: Sequence[Logits]) -> dict[str, Any]:
    """A figure for each development part, and for all of them together, from the logits of all in order."""
    every = [example for some in task.dev.values() for example in some]
    counts = count(every, logits, task.material.labels)
    ends = list(accumulate((len(some) for some in task.dev.values()), initial=0))
    parts = {source: slice(*ends[place : place + 2]) for place, source in enumerate(task.dev)}
    parts["all"] = slice(0, ends[-1])
    return {name: asdict(figure(Counts(counts.right[part], counts.of[part]))) for name, part in parts.items()}


def baselines(task: Task) -> dict[str, Any]:
    """What needs no model: the commonest class and a bag of words; for names, no name at all and a lookup."""
    train = [example.item for example in task.train]
    found: dict[str, Any] = {}
    for source, examples in task.dev.items():
        items = [example.item for example in examples]
        if task.tags:
            nothing = count_names(items, [["O"] * len(item.parts[0]) for item in items])
            simple = {"majority": nothing, "lookup": by_lookup(train, items)}
        else:
            simple = {"majority": constant(items, majority(train)), "words": by_words(train, items)}
        found[source] = {name: asdict(figure(counts)) for name, counts in simple.items()}
    return found


def report(task: Task, base: Path, partner: Path, runs: Sequence[Path], shipped: Path) -> dict[str, Any]:
    """All figures of the card: the stored partner, the runs by seed, the baselines, and how far each layer moved."""
    encoder = load_difference(base, partner)
    every = [example for some in task.dev.values() for example in some]
    after = predict(encoder.model, every)
    before = {run.name: predict(trained(task, base, run), every) for run in runs}
    stored = scores(task, after)
    rank = int(encoder.model.config.difference["rank"])
    return {
        "sizes": {"train": len(task.train), "stop": len(task.stop), **{k: len(v) for k, v in task.dev.items()}},
        "cut": task.cut,
        "shipped": stored,
        "kept": asdict(kept(partner, rank, before[shipped.name], after, stored["all"]["value"])),
        "runs": {run: scores(task, logits) for run, logits in before.items()},
        "baselines": baselines(task),
        "similarity": layer_similarity(load_directory(base), encoder, corpus_named("english")),
    }
