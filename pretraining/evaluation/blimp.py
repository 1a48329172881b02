"""Does it prefer the grammatical sentence? BLiMP's minimal pairs by pseudo-log-likelihood (Warstadt et al. 2020)."""

import json
from dataclasses import dataclass
from pathlib import Path

from pretraining.evaluation.masked import pseudo_log_likelihoods
from pretraining.evaluation.subject import Subject


@dataclass(frozen=True)
class Blimp:
    """Mean over paradigms of the share of pairs whose good sentence scores higher (chance .5), and each paradigm's."""

    accuracy: float
    n: int
    paradigms: dict[str, float]
    terms: dict[str, float]


def blimp_accuracy(subject: Subject, folder: Path, *, pairs: int | None = None) -> Blimp:
    """All paradigms of a folder of JSON lines; `pairs` keeps the first of each. A tie counts as wrong."""
    paradigms: dict[str, float] = {}
    terms: dict[str, list[float]] = {}
    total = 0
    for path in sorted(folder.glob("*.jsonl")):
        items = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()][:pairs]
        good = pseudo_log_likelihoods(subject, [item["sentence_good"] for item in items])
        bad = pseudo_log_likelihoods(subject, [item["sentence_bad"] for item in items])
        accuracy = sum(one > other for one, other in zip(good, bad, strict=True)) / len(items)
        paradigms[path.stem] = accuracy
        terms.setdefault(items[0]["linguistics_term"], []).append(accuracy)
        total += len(items)
    if not paradigms:
        raise FileNotFoundError(f"no BLiMP paradigms (*.jsonl) in {folder}")
    means = {term: sum(values) / len(values) for term, values in terms.items()}
    return Blimp(sum(paradigms.values()) / len(paradigms), total, paradigms, means)
