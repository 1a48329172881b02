"""Evaluate a model under attacks, and under random edits of the same size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.evaluation.evaluation import Evaluation, prepare_evaluation
from bertology.analyses.evaluation.options import AttackOptions
from bertology.analyses.text_attacks.distractors import AttackedExample
from bertology.analyses.text_attacks.partial_scores import PartialScores, evaluate_perturbed, number_examples
from bertology.analyses.text_attacks.perturbations import AttackConfig
from bertology.analyses.text_attacks.registry import (
    TextAttack,
    example_rng,
    parse_attacks,
    random_edit,
    word_edit_distance,
    word_pool,
)
from bertology.arrays import BoolArray, FloatArray
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.estimates.metrics import Counts
from bertology.progress import ProgressCallback, no_progress
from bertology.recording.overflow import cut_example


@dataclass(frozen=True)
class AttackedScores:
    """(example,) scores of edited examples, whether the model's input was changed, and the edit distance per word.

    Both are about what the model sees: tokens of texts that were cut to its maximum input. An example that was not
    changed keeps its clean score. NaN, and not evaluated, if no example was changed.
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
    n_truncated: int
    """Attacked examples of which words were cut, so that they fit the model's maximum input."""
    n_not_evaluated: int
    """Examples that could no longer be evaluated."""


@dataclass(frozen=True)
class _EditedExamples:
    """All examples under one attack, and with random edits of the same size; how many the attack changed."""

    attack: TextAttack
    attacked: Sequence[AttackedExample]
    edited: Sequence[Example]
    random: Sequence[Example]
    n_changed: int


class AttackRunner:
    """The examples a model can be evaluated on, its scores on them, and its scores under attack.

    `examples` are cut to the model's maximum input before they are attacked, so that no attack changes words that the
    model does not see; passages of questions are read in windows and not cut. What an attack adds takes the place of
    the last words of the passage that no longer fit.
    """

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
        self.encoder, self.cache, self.config, self.seed = encoder, cache, config, options.seed
        self._originals = number_examples(self.evaluation)
        self.examples = [self._fit(example) for example in self._originals]
        self._input_ids = self._token_ids(self.examples)
        self.clean_scores = evaluate_perturbed(
            encoder, self.evaluation, self.examples, len(self.examples), seed=self.seed
        )
        # Of the whole corpus, so that neither the sample nor the model changes the random edits of an example.
        self._word_pool = word_pool(corpus)

    def run(self, names: str) -> list[AttackResult]:
        """Results of the named attacks; finished attacks are cached."""
        attacks = parse_attacks(names, {example.kind for example in self.examples})
        meter = self.cache.progress_meter(f"Attacking {len(self.examples)} examples ({len(attacks)} attacks)")
        edits = [self._edit(attack) for attack in attacks]
        evaluated = [examples for each in edits if each.n_changed for examples in (each.edited, each.random)]
        scores = iter(self._evaluate_all(evaluated, meter))
        return [self._result(each, *((next(scores), next(scores)) if each.n_changed else ())) for each in edits]

    def attack_all(self, attack: TextAttack) -> list[AttackedExample]:
        """All examples attacked, and cut if too long; unchanged if the attack does not apply to their kind."""
        return [
            self._attack(attack, example, original)
            if example.kind in attack.example_kinds
            else AttackedExample(example)
            for example, original in zip(self.examples, self._originals, strict=True)
        ]

    def random_edits(self, attacked: Sequence[Example]) -> list[Example]:
        """All examples with random edits of the same size as those of the attacked examples."""
        return [
            self._fit(random_edit(before, after, self._word_pool, example_rng(original, "random edit", self.seed)))
            for before, after, original in zip(self.examples, attacked, self._originals, strict=True)
        ]

    def is_changed(self, examples: Sequence[Example]) -> BoolArray:
        """(example,) whether the model's input differs from that of the clean example."""
        pairs = zip(self._input_ids, self._token_ids(examples), strict=True)
        return np.array([before != after for before, after in pairs], np.bool_)

    def evaluate(self, examples: Sequence[Example]) -> PartialScores:
        """Scores of edited versions of all examples, cached; an unchanged example keeps its clean score."""
        return self._evaluate_all([examples], no_progress)[0]

    def _evaluate_all(self, versions: Sequence[Sequence[Example]], meter: ProgressCallback) -> list[PartialScores]:
        """Scores of several edited versions, which the workers of an engine share."""
        is_same = [~self.is_changed(examples) for examples in versions]
        arguments = [
            {
                "encoder": self.encoder,
                "evaluation": self.evaluation,
                "edited": [example for example, same in zip(examples, of_version, strict=True) if not same],
                "n_examples": len(self.examples),
                "seed": self.seed,
            }
            for examples, of_version in zip(versions, is_same, strict=True)
        ]
        stored = self.cache.call_all(_edited_scores, arguments, meter=meter)
        return [self._with_clean_scores(*each) for each in zip(stored, is_same, strict=True)]

    def _with_clean_scores(self, stored: list[list[float]], is_same: BoolArray) -> PartialScores:
        losses, correct, total = np.array(stored)
        scores = PartialScores(Counts(correct, total), losses)
        clean = self.clean_scores
        counts = Counts(
            np.where(is_same, clean.counts.correct, scores.counts.correct),
            np.where(is_same, clean.counts.total, scores.counts.total),
        )
        return PartialScores(counts, np.where(is_same, clean.losses, scores.losses))

    def _edit(self, attack: TextAttack) -> _EditedExamples:
        attacked = self.attack_all(attack)
        edited = [each.example for each in attacked]
        return _EditedExamples(attack, attacked, edited, self.random_edits(edited), int(self.is_changed(edited).sum()))

    def _result(
        self, edits: _EditedExamples, attacked: PartialScores | None = None, random: PartialScores | None = None
    ) -> AttackResult:
        distances = [distance for example in edits.attacked for distance in example.edit_distances]
        n_lost = int((self.clean_scores.is_evaluated & ~attacked.is_evaluated).sum()) if attacked is not None else 0
        return AttackResult(
            edits.attack,
            self._attacked_scores(edits.edited, attacked),
            self._attacked_scores(edits.random, random),
            edits.n_changed,
            mean_shuffle_distance=float(np.mean(distances)) if distances else None,
            n_shuffles=len(distances),
            n_below_minimum=sum(example.n_below_minimum for example in edits.attacked),
            n_truncated=sum(attacked.is_truncated for attacked in edits.attacked),
            n_not_evaluated=n_lost,
        )

    def _attacked_scores(self, examples: Sequence[Example], scores: PartialScores | None) -> AttackedScores:
        n = len(self.examples)
        if scores is None:
            return AttackedScores(PartialScores.missing(n), *np.full((2, n), np.nan))
        edit_rate = [
            word_edit_distance(before, after) / max(1, sum(map(len, before.segments)))
            for before, after in zip(self.examples, examples, strict=True)
        ]
        is_changed = self.is_changed(examples).astype(np.float64)
        return AttackedScores(scores, is_changed, np.array(edit_rate))

    def _attack(self, attack: TextAttack, example: Example, original: Example) -> AttackedExample:
        attacked = attack(example, self.config, self.seed, original=original)
        fitted = self._fit(attacked.example, attacked.n_added)
        return replace(attacked, example=fitted, is_truncated=fitted is not attacked.example)

    def _fit(self, example: Example, n_added: int = 0) -> Example:
        """The example cut to the model's maximum input; as it is if it fits, cannot be cut, or is read in windows."""
        if self.evaluation.task == "qa":
            return example
        keep_end, limit = self.evaluation.task == "sentence", self.encoder.max_length
        return cut_example(self.encoder, example, limit, keep_end=keep_end, n_protected=n_added) or example

    def _token_ids(self, examples: Sequence[Example]) -> list[list[bytes]]:
        """The token ids of each input of each example."""
        tokenised = iter(self.encoder.tokenise([text for example in examples for text in example.text_inputs]))
        return [[next(tokenised).ids.tobytes() for _ in example.text_inputs] for example in examples]


def _edited_scores(
    encoder: Encoder, evaluation: Evaluation, edited: Sequence[Example], n_examples: int, seed: int
) -> list[list[float]]:
    """[loss, correct, total][example] of edited examples, whose ids are their indices among `n_examples`."""
    scores = evaluate_perturbed(encoder, evaluation, edited, n_examples, seed=seed)
    return [values.tolist() for values in (scores.losses, scores.counts.correct, scores.counts.total)]
