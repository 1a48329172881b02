"""What the names of models say: checkpoints of a training run, random seeds, and untrained models."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

from bertology.encoder.builtin import BUILT_IN_MODELS
from bertology.views.report.content import UNTRAINED_PREFIX

_PERCENT = re.compile(r"(?P<run>.+)@(?P<percent>\d+(\.\d+)?)%")
_STEP = re.compile(r"(?P<run>.*?)[/\\]?checkpoint-(?P<step>\d+)[/\\]?")
_UNTRAINED_SEED = re.compile(rf"(?P<run>{UNTRAINED_PREFIX}.+?)(@(?P<seed>\d+))?")
_SEED = re.compile(r"(?P<start>.*?)[-_@ ]?seed[-_= ]?\d+(?P<end>.*)", re.IGNORECASE)


class Checkpoint(NamedTuple):
    """A point of a training run: the run, the progress, and whether that is in percent or in steps."""

    run: str
    progress: float
    unit: str


def find_checkpoint(source: str) -> Checkpoint | None:
    """The checkpoint that a name says: `mini@10%`, or a folder `checkpoint-500`; None for other names."""
    if match := _PERCENT.fullmatch(source):
        return Checkpoint(match["run"], float(match["percent"]), "%")
    if match := _STEP.fullmatch(source):
        return Checkpoint(match["run"] or "checkpoints", float(match["step"]), "steps")
    return None


def seed_family_name(source: str) -> str:
    """The name without its seed: `runs/seed-3` is of `runs`, `random:mini@2` of `random:mini`; empty without a seed."""
    if match := _UNTRAINED_SEED.fullmatch(source):
        return match["run"]
    if match := _SEED.fullmatch(source):
        return f"{match['start']}{match['end']}".rstrip("/\\ -_") or "seeds"
    return ""


def is_untrained(source: str) -> bool:
    """Whether the weights are random: `random:MODEL`, or a built-in model that was not trained."""
    built_in = BUILT_IN_MODELS.get(source)
    return source.startswith(UNTRAINED_PREFIX) or (built_in is not None and built_in.storage == "untrained")


def short_names(sources: Sequence[str]) -> list[str]:
    """The last part of each path, of a checkpoint the last two; where two would be equal, as many as differ."""
    return [next(name for name in _shortening(source, sources)) for source in sources]


def _shortening(source: str, sources: Sequence[str]) -> list[str]:
    """Names of a model that no other one has, the shortest first; the source itself last."""
    fewest = 2 if find_checkpoint(PurePath(source).name) is not None else 1
    candidates = {n: _last_parts(source, n) for n in range(fewest, len(PurePath(source).parts) + 1)}
    others = [other for other in sources if other != source]
    return [
        candidate for n, candidate in candidates.items() if all(_last_parts(other, n) != candidate for other in others)
    ] or [source]


def _last_parts(source: str, n: int) -> str:
    prefix, separator, path = source.rpartition(":")
    is_path = path.startswith(("/", "./", "../", "~")) or "\\" in path
    return f"{prefix}{separator}{'/'.join(PurePath(path).parts[-n:])}" if is_path else source
