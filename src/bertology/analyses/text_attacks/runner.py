"""Evaluate a model under attacks, and under random edits of the same size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bertology.analyses.evaluation.evaluation import prepare_evaluation
from bertology.analyses.evaluation.options import AttackOptions
from bertology.analyses.run import AnalysisCache
from bertology.analyses.text_attacks.distractors import AttackedExample
from bertology.analyses.text_attacks.partial_scores import PartialScores, evaluate_perturbed, number_examples
from bertology.analyses.text_attacks.perturbations import AttackConfig
from bertology.analyses.text_attacks.registry import (
    TextAttack,
    parse_attacks,
    random_edit,
    word_edit_distance,
    word_pool,
)
from bertology.arrays import FloatArray
from bertology.corpus.corpus import Corpus, Example
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.estimates.metrics import Counts
from bertology.training.data_split import content_hash


@dataclass(frozen=True)
class AttackedScores:
    """(example,) scores of edited examples, whether each was changed, and its edit distance per word.

    An example that was not changed keeps its clean score. NaN, and not evaluated, if no example was changed.
    """

    scores: PartialScores
    is_changed: FloatArray
    edit_rate: FloatArray


@dataclass(frozen=True)
class AttackResult:
    """One attack on all examples, and random edits of the same size."""

    attack: TextAttack
    attacked: AttackedScores
    random: AttackedScores
    n_changed: int
    mean_shuffle_distance: float | None
    """Mean edit distance of the shuffles divided by length; None without shuffles."""
    n_shuffles: int
    n_below_minimum: int
    """Shuffles that did not reach the minimum distance."""
    n_too_long: int
    """Attacked examples that are longer than the model's maximum input, truncated or not evaluated."""
    n_not_evaluated: int
    """Examples that could no longer be evaluated."""


class AttackRunner:
    """The examples a model can be evaluated on, its scores on them, and its scores under attack."""

    def __init__(
        self,
        encoder: Encoder,
        corpus: Corpus,
        cache: AnalysisCache,
        options: AttackOptions,
        config: AttackConfig,
    ) -> None:
        """Sample the examples and evaluate them without attack."""
        self.evaluation = prepare_evaluation(encoder, corpus, **asdict(options))
        if self.evaluation.task == "token":
            raise Refusal(
                f"{encoder.name} is a token classifier, and attacks change the order of words, so that gold tags no "
                "longer match",
                "a model for classification, question answering or multiple choice, or a masked language model",
                "Choose another model",
            )
        self.examples = number_examples(self.evaluation)
        self.encoder, self.cache, self.config, self.seed = encoder, cache, config, options.seed
        self.clean_scores = evaluate_perturbed(
            encoder, self.evaluation, self.examples, len(self.examples), seed=self.seed
        )
        self._word_pool = word_pool(self.examples)

    def run(self, names: str) -> list[AttackResult]:
        """Results of the named attacks; finished attacks are cached."""
        attacks = parse_attacks(names, {example.kind for example in self.examples})
        meter = self.cache.progress_meter(f"Attacking {len(self.examples)} examples ({len(attacks)} attacks)")
        results: list[AttackResult] = []
        for done, attack in enumerate(attacks, start=1):
            results.append(self._run_attack(attack))
            meter(done, len(attacks))
        return results

    def attack_all(self, attack: TextAttack) -> list[AttackedExample]:
        """All examples attacked; those of a kind that the attack does not apply to are unchanged."""
        return [
            attack(example, self.config, self.seed)
            if example.kind in attack.example_kinds
            else AttackedExample(example)
            for example in self.examples
        ]

    def random_edits(self, attacked_examples: Sequence[AttackedExample]) -> list[Example]:
        """All examples with random edits of the same size as the attack."""
        pairs = zip(self.examples, attacked_examples, strict=True)
        return [random_edit(example, attacked.example, self._word_pool, self.seed) for example, attacked in pairs]

    def evaluate(self, examples: Sequence[Example]) -> PartialScores:
        """Scores of edited versions of all examples; an unchanged example keeps its clean score."""
        edited = [after for after, before in zip(examples, self.examples, strict=True) if _differs(before, after)]
        scores = evaluate_perturbed(self.encoder, self.evaluation, edited, len(self.examples), seed=self.seed)
        is_same = np.ones(len(self.examples), np.bool_)
        is_same[[int(example.id) for example in edited]] = False
        clean = self.clean_scores
        counts = Counts(
            np.where(is_same, clean.counts.correct, scores.counts.correct),
            np.where(is_same, clean.counts.total, scores.counts.total),
        )
        return PartialScores(counts, np.where(is_same, clean.losses, scores.losses))

    def _run_attack(self, attack: TextAttack) -> AttackResult:
        attacked_examples = self.attack_all(attack)
        versions = [attacked.example for attacked in attacked_examples], self.random_edits(attacked_examples)
        n_changed = sum(_differs(*pair) for pair in zip(self.examples, versions[0], strict=True))
        attacked, random = (
            self._attacked_scores(examples, counts, is_measured=n_changed > 0)
            for examples, counts in zip(versions, self._cached_counts(attack, *versions), strict=True)
        )
        distances = [distance for example in attacked_examples for distance in example.edit_distances]
        is_lost = self.clean_scores.is_evaluated & ~attacked.scores.is_evaluated
        return AttackResult(
            attack,
            attacked,
            random,
            n_changed,
            mean_shuffle_distance=float(np.mean(distances)) if distances else None,
            n_shuffles=len(distances),
            n_below_minimum=sum(example.n_below_minimum for example in attacked_examples),
            n_too_long=sum(
                self._is_too_long(after)
                for before, after in zip(self.examples, versions[0], strict=True)
                if _differs(before, after)
            ),
            n_not_evaluated=int(is_lost.sum()) if n_changed else 0,
        )

    def _attacked_scores(self, examples: Sequence[Example], counts: Any, *, is_measured: bool) -> AttackedScores:
        n = len(self.examples)
        if not is_measured:
            return AttackedScores(PartialScores.missing(n), *np.full((2, n), np.nan))
        scores = PartialScores(Counts(*map(np.array, counts)), np.zeros(n))
        pairs = list(zip(self.examples, examples, strict=True))
        is_changed = np.array([float(_differs(before, after)) for before, after in pairs])
        edit_rate = np.array(
            [word_edit_distance(before, after) / max(1, sum(map(len, before.segments))) for before, after in pairs]
        )
        return AttackedScores(scores, is_changed, edit_rate)

    def _cached_counts(self, attack: TextAttack, attacked: list[Example], random_edits: list[Example]) -> Any:
        """[attacked or random][correct, total][example]."""
        key = {
            "analysis": "interventions/attacks",
            "format": 2,
            "model": self.encoder.fingerprint,
            "task": self.evaluation.task,
            "examples": content_hash(self.examples),
            "attack": attack.name,
            "config": asdict(self.config),
            "seed": self.seed,
        }

        def compute() -> list[list[list[float]]]:
            counts = [self.evaluate(examples).counts for examples in (attacked, random_edits)]
            return [[version.correct.tolist(), version.total.tolist()] for version in counts]

        return self.cache.get_or_compute(key, compute)

    def _is_too_long(self, example: Example) -> bool:
        return any(len(tokens) > self.encoder.max_length for tokens in self.encoder.tokenise(example.text_inputs))


def _differs(before: Example, after: Example) -> bool:
    return any(left.text != right.text for left, right in zip(before.segments, after.segments, strict=True))
