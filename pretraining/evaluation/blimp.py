"""BLiMP: which sentence of a minimal pair has the higher pseudo-log-likelihood (Warstadt et al. 2020)."""

import json
from dataclasses import dataclass
from pathlib import Path

from pretraining.evaluation.evaluated_model import EvaluatedModel
from pretraining.evaluation.masked_words import pseudo_log_likelihoods


@dataclass(frozen=True)
class BlimpAccuracy:
    """Mean accuracy over paradigms (chance 0.5), with the accuracy of each paradigm and each linguistic term."""

    accuracy: float
    n: int
    paradigms: dict[str, float]
    terms: dict[str, float]


def blimp_accuracy(model: EvaluatedModel, directory: Path, *, max_pairs: int | None = None) -> BlimpAccuracy:
    """Accuracy on all paradigms (*.jsonl), on the first `max_pairs` pairs of each. A tie counts as wrong."""
    paradigms: dict[str, float] = {}
    terms: dict[str, list[float]] = {}
    n_pairs = 0
    for path in sorted(directory.glob("*.jsonl")):
        pairs = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()][:max_pairs]
        good = pseudo_log_likelihoods(model, [pair["sentence_good"] for pair in pairs])
        bad = pseudo_log_likelihoods(model, [pair["sentence_bad"] for pair in pairs])
        accuracy = sum(good_score > bad_score for good_score, bad_score in zip(good, bad, strict=True)) / len(pairs)
        paradigms[path.stem] = accuracy
        terms.setdefault(pairs[0]["linguistics_term"], []).append(accuracy)
        n_pairs += len(pairs)
    if not paradigms:
        raise FileNotFoundError(f"no BLiMP paradigms (*.jsonl) in {directory}")
    means = {term: sum(accuracies) / len(accuracies) for term, accuracies in terms.items()}
    return BlimpAccuracy(sum(paradigms.values()) / len(paradigms), n_pairs, paradigms, means)
