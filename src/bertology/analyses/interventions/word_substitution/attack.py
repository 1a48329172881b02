"""Substitution attacks on all examples of a corpus, and random replacements of as many words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from bertology.analyses.evaluation.evaluation import (
    MLM,
    TASK_DESCRIPTIONS,
    Evaluation,
    prepare_evaluation,
    with_perturbed_examples,
)
from bertology.analyses.interventions.word_substitution.candidates import PartOfSpeechLexicon, SentenceEmbedder
from bertology.analyses.interventions.word_substitution.search import (
    CandidateFunction,
    SearchResult,
    WordSequence,
    search,
)
from bertology.analyses.run import AnalysisCache
from bertology.analyses.text_attacks.partial_scores import number_examples
from bertology.analyses.text_attacks.perturbations import FUNCTION_WORDS, NEGATIONS
from bertology.analyses.text_attacks.registry import random_edit, word_pool
from bertology.analyses.text_attacks.word_edits import EditedWord, apply_edits, identity_edits
from bertology.arrays import FloatArray
from bertology.corpus.corpus import Corpus, Example, ExampleKind
from bertology.encoder.encoder import Encoder, TaskEncoder
from bertology.errors import Refusal
from bertology.lazy import torch
from bertology.training.data_split import content_hash

ATTACKED_SEGMENT: dict[ExampleKind, int] = {"sentence": 0, "pair": 1, "choice": 0}
"""Index of the segment whose words are replaced: the text, the second text of a pair, the passage."""


@dataclass(frozen=True)
class SearchLimits:
    """Minimum cosine between attacked and original text, and maximum number of model queries per example."""

    min_similarity: float
    max_queries: int


@dataclass(frozen=True)
class SubstitutionOutcome:
    """The attack on one example, and a random replacement of as many words."""

    example: Example
    correct_before: bool
    correct_after: bool
    random_correct: bool
    similarity: float
    random_similarity: float
    search: SearchResult
    prediction: str


class SubstitutionAttack:
    """Attacks every example of a classification task."""

    def __init__(
        self,
        encoder: Encoder,
        corpus: Corpus,
        cache: AnalysisCache,
        *,
        sample_size: int,
        candidates: CandidateFunction,
        candidates_key: str,
        lexicon: PartOfSpeechLexicon | None,
        embedder: SentenceEmbedder,
        limits: SearchLimits,
        seed: int,
    ) -> None:
        """Sample the examples; `candidates_key` identifies the source of candidates in the cache."""
        self.evaluation = prepare_evaluation(encoder, corpus, sample_size=sample_size, seed=seed)
        task = self.evaluation.task
        if task not in ("sentence", "pair", "choice") or not isinstance(encoder, TaskEncoder):
            description = "masked language modelling" if task == MLM else TASK_DESCRIPTIONS[task]
            raise Refusal(
                f"interventions/word_substitution needs a classifier; {encoder.name} would be evaluated on "
                f"{description}",
                "a model fine-tuned for sentence, pair or multiple-choice classification",
                "Try --model mini-sentiment with a labelled corpus",
            )
        self.examples = number_examples(self.evaluation)
        self.labels = encoder.labels if task != "choice" else ()
        self._encoder, self._cache, self._seed, self._limits = encoder, cache, seed, limits
        self._candidates, self._candidates_key = candidates, candidates_key
        self._lexicon, self._embedder = lexicon, embedder
        self._word_pool = word_pool(self.examples)

    def run(self) -> list[SubstitutionOutcome]:
        """The outcome of every example; finished examples are cached."""
        meter = self._cache.progress_meter(f"Substituting words ({len(self.examples)} examples)")
        outcomes: list[SubstitutionOutcome] = []
        for done, example in enumerate(self.examples, start=1):
            outcomes.append(self._outcome(example))
            meter(done, len(self.examples))
        return outcomes

    def gold_index(self, example: Example) -> int:
        """The index of the gold class or option."""
        return self.labels.index(str(example.label)) if self.labels else int(example.label or 0)

    def predict_proba(self, examples: Sequence[Example]) -> FloatArray:
        """(example, class) probabilities of classes or options; NaN for an example that cannot be evaluated."""
        return predict_proba(self._encoder, self.evaluation, examples)

    def _outcome(self, example: Example) -> SubstitutionOutcome:
        key = {
            "analysis": "interventions/word_substitution",
            "format": 3,
            "model": self._encoder.fingerprint,
            "example": content_hash([replace(example, id="")]),
            "candidates": self._candidates_key,
            "pos_corpus": self._lexicon.fingerprint if self._lexicon is not None else None,
            "similarity_model": self._embedder.encoder.fingerprint,
            "limits": asdict(self._limits),
            "seed": self._seed,
        }
        stored = self._cache.get_or_compute(key, lambda: self._attack(example))
        result = SearchResult(
            tuple(stored["words"]),
            tuple((int(index), old, new) for index, old, new in stored["edits"]),
            int(stored["prediction"]),
            float("nan") if stored["probability"] is None else stored["probability"],
            stored["n_queries"],
            stored["budget_exhausted"],
        )
        return SubstitutionOutcome(
            example,
            bool(stored["correct_before"]),
            bool(stored["correct_after"]),
            bool(stored["random_correct"]),
            float(stored["similarity"]),
            float(stored["random_similarity"]),
            result,
            self.labels[result.prediction] if self.labels else f"option {result.prediction + 1}",
        )

    def _attack(self, example: Example) -> dict[str, Any]:
        segment_index = ATTACKED_SEGMENT[example.kind]
        words, gold = example.segments[segment_index].words, self.gold_index(example)
        similarity = self._embedder.similarity(words)
        result = search(
            words,
            gold,
            [index for index, word in enumerate(words) if _is_replaceable(word)],
            predict=lambda texts: self.predict_proba([_replace_words(example, segment_index, text) for text in texts]),
            candidates=self._same_pos_candidates,
            similarity=similarity,
            min_similarity=self._limits.min_similarity,
            max_queries=self._limits.max_queries,
        )
        attacked = _replace_words(example, segment_index, result.words)
        random = random_edit(example, attacked, self._word_pool, self._seed)
        predictions = [int(np.argmax(probabilities)) for probabilities in self.predict_proba([example, random])]
        similarities = similarity([result.words, random.segments[segment_index].words])
        return {
            **asdict(result),
            "probability": result.probability if np.isfinite(result.probability) else None,
            "correct_before": predictions[0] == gold,
            "correct_after": result.prediction == gold and predictions[0] == gold,
            "random_correct": predictions[1] == gold,
            "similarity": float(similarities[0]),
            "random_similarity": float(similarities[1]),
        }

    def _same_pos_candidates(self, word: str) -> list[str]:
        """Candidates that can have the word's part of speech, capitalised like the word."""
        lexicon = self._lexicon
        matching = (other for other in self._candidates(word) if lexicon is None or lexicon.share_tag(word, other))
        return [other.capitalize() if word[:1].isupper() else other for other in matching]


def predict_proba(encoder: Encoder, evaluation: Evaluation, examples: Sequence[Example]) -> FloatArray:
    """(example, class) probabilities of perturbed examples; NaN for an example that cannot be evaluated."""
    numbered = [replace(example, id=str(index)) for index, example in enumerate(examples)]
    try:
        perturbed = with_perturbed_examples(encoder, evaluation, numbered)
    except Refusal:
        return np.full((len(examples), 1), np.nan)
    rows: dict[int, FloatArray] = {}
    for batch in perturbed.batches:
        with torch.no_grad():
            logits = encoder.forward(batch.inputs).logits[batch.task_head].double()
        if evaluation.task == "choice":
            is_option = batch.inputs.attention_mask[:, 0].reshape(len(batch.examples), -1) > 0
            logits = logits.reshape(len(batch.examples), -1).masked_fill(~is_option, float("-inf"))
        for index, row in zip(batch.examples, logits.softmax(-1).cpu().numpy(), strict=True):
            rows[int(perturbed.examples[index].id)] = row
    n_classes = max(map(len, rows.values()))
    probabilities = np.full((len(examples), n_classes), np.nan)
    for index, row in rows.items():
        probabilities[index] = np.pad(row, (0, n_classes - len(row)))
    return probabilities


def _is_replaceable(word: str) -> bool:
    return word.isalpha() and word.lower() not in FUNCTION_WORDS | NEGATIONS


def _replace_words(example: Example, segment_index: int, words: WordSequence) -> Example:
    """The example with other words in one segment; one word fewer means that a word was removed."""
    segment = example.segments[segment_index]
    edits = identity_edits(segment)
    if len(words) == len(segment):
        edits = [EditedWord(word, edit.source_index) for word, edit in zip(words, edits, strict=True)]
    else:
        removed = next((index for index, word in enumerate(words) if edits[index].word != word), len(words))
        del edits[removed]
    segments = list(example.segments)
    segments[segment_index] = apply_edits(segment, edits)
    return replace(example, segments=tuple(segments))
