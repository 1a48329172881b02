"""Substitution attacks on all examples of a corpus, and random replacements of as many words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from random import Random
from typing import Any

import numpy as np

from bertology.analyses.cache import AnalysisCache
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
from bertology.analyses.text_attacks.partial_scores import number_examples
from bertology.analyses.text_attacks.perturbations import FUNCTION_WORDS, NEGATIONS
from bertology.analyses.text_attacks.registry import example_rng, word_pool
from bertology.analyses.text_attacks.word_edits import EditedWord, apply_edits, identity_edits
from bertology.arrays import FloatArray
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example, ExampleKind
from bertology.encoder.encoder import Encoder, TaskEncoder
from bertology.errors import Refusal
from bertology.lazy import torch
from bertology.recording.overflow import ExampleOverflow, cut_example

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


@dataclass(frozen=True, eq=False)
class WordSearch:
    """What the search for replacements depends on besides the example: a model with its task, candidates and limits."""

    encoder: Encoder
    task: Evaluation
    """Without examples."""
    candidates: CandidateFunction
    lexicon: PartOfSpeechLexicon | None
    embedder: SentenceEmbedder
    limits: SearchLimits

    def predict_proba(self, examples: Sequence[Example]) -> FloatArray:
        """(example, class) probabilities of classes or options; NaN for an example that cannot be evaluated."""
        return predict_proba(self.encoder, self.task, examples)

    def same_pos_candidates(self, word: str) -> list[str]:
        """Candidates that can have the word's part of speech, capitalised like the word."""
        lexicon = self.lexicon
        matching = (other for other in self.candidates(word) if lexicon is None or lexicon.share_tag(word, other))
        return [_capitalise_like(word, other) for other in matching]


class SubstitutionAttack:
    """Attacks every example of a classification task."""

    def __init__(
        self,
        encoder: Encoder,
        corpus: Corpus,
        cache: AnalysisCache,
        *,
        sample_size: int,
        overflow: ExampleOverflow,
        candidates: CandidateFunction,
        lexicon: PartOfSpeechLexicon | None,
        embedder: SentenceEmbedder,
        limits: SearchLimits,
        seed: int,
    ) -> None:
        """Sample the examples, and cut them to what the model sees."""
        self.evaluation = prepare_evaluation(encoder, corpus, sample_size=sample_size, seed=seed, overflow=overflow)
        task = self.evaluation.task
        if task not in ("sentence", "pair", "choice") or not isinstance(encoder, TaskEncoder):
            description = "masked language modelling" if task == MLM else TASK_DESCRIPTIONS[task]
            raise Refusal(
                f"interventions/word_substitution needs a classifier; {encoder.name} would be evaluated on "
                f"{description}",
                "a model fine-tuned for sentence, pair or multiple-choice classification",
                "Try --model mini-sentiment with a labelled corpus",
            )
        self._originals = number_examples(self.evaluation)
        self.examples = [
            cut_example(encoder, example, encoder.max_length, keep_end=task == "sentence") or example
            for example in self._originals
        ]
        self.labels = encoder.labels if task != "choice" else ()
        self._cache, self._seed = cache, seed
        task_only = Evaluation(task, self.evaluation.metric, (), (), 0)
        self._search = WordSearch(encoder, task_only, candidates, lexicon, embedder, limits)
        # Of the whole corpus, so that neither the sample nor the model changes the random words of an example.
        self._content_words = list(filter(is_content_word, word_pool(corpus)))

    def run(self) -> list[SubstitutionOutcome]:
        """The outcome of every example; finished examples are cached."""
        meter = self._cache.progress_meter(f"Substituting words ({len(self.examples)} examples)")
        arguments = [
            {"attack": self._search, "example": replace(example, id=""), "gold": self.gold_index(example)}
            for example in self.examples
        ]
        searches = self._cache.call_all(search_example, arguments, meter=meter)
        controls = [self._control(*each) for each in zip(self.examples, self._originals, searches, strict=True)]
        compared = self._cache.call_all(
            evaluate_control,
            [{**each, "control": control} for each, control in zip(arguments, controls, strict=True)],
            meter=self._cache.progress_meter("Replacing random words"),
        )
        return [self._outcome(*each) for each in zip(self.examples, searches, compared, strict=True)]

    def gold_index(self, example: Example) -> int:
        """The index of the gold class or option."""
        return self.labels.index(str(example.label)) if self.labels else int(example.label or 0)

    def _control(self, example: Example, original: Example, stored: Mapping[str, Any]) -> Example:
        """The example with as many random words as the search has replaced."""
        rng = example_rng(original, "random edit", self._seed)
        return replace(replace_random_words(example, len(stored["edits"]), self._content_words, rng), id="")

    def _outcome(self, example: Example, stored: Mapping[str, Any], control: Mapping[str, Any]) -> SubstitutionOutcome:
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
            bool(control["correct"]),
            float(stored["similarity"]),
            float(control["similarity"]),
            result,
            self.labels[result.prediction] if self.labels else f"option {result.prediction + 1}",
        )


def search_example(attack: WordSearch, example: Example, gold: int) -> dict[str, Any]:
    """The search on one example, and whether its prediction was right before and after."""
    segment_index = ATTACKED_SEGMENT[example.kind]
    words = example.segments[segment_index].words
    similarity = attack.embedder.similarity(words)
    result = search(
        words,
        gold,
        [index for index, word in enumerate(words) if is_content_word(word)],
        predict=lambda texts: attack.predict_proba([_replace_words(example, segment_index, text) for text in texts]),
        candidates=attack.same_pos_candidates,
        similarity=similarity,
        min_similarity=attack.limits.min_similarity,
        max_queries=attack.limits.max_queries,
    )
    correct_before = int(np.argmax(attack.predict_proba([example])[0])) == gold
    return {
        **asdict(result),
        "probability": result.probability if np.isfinite(result.probability) else None,
        "correct_before": correct_before,
        "correct_after": result.prediction == gold and correct_before,
        "similarity": float(similarity([result.words])[0]),
    }


def evaluate_control(attack: WordSearch, example: Example, control: Example, gold: int) -> dict[str, Any]:
    """Whether the prediction for a random edit of an example is right, and how similar the two texts are."""
    segment_index = ATTACKED_SEGMENT[example.kind]
    similarity = attack.embedder.similarity(example.segments[segment_index].words)
    return {
        "correct": int(np.argmax(attack.predict_proba([control])[0])) == gold,
        "similarity": float(similarity([control.segments[segment_index].words])[0]),
    }


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


def replace_random_words(example: Example, n_words: int, content_words: Sequence[str], rng: Random) -> Example:
    """The example with random content words instead of this many of its own, in the segment that is attacked."""
    segment_index = ATTACKED_SEGMENT[example.kind]
    words = list(example.segments[segment_index].words)
    known = {word.lower() for word in words}
    new_words = [word for word in content_words if word.lower() not in known]
    if not new_words:
        return example
    indices = [index for index, word in enumerate(words) if is_content_word(word)]
    for index in sorted(rng.sample(indices, min(n_words, len(indices)))):
        words[index] = _capitalise_like(words[index], rng.choice(new_words))
    return _replace_words(example, segment_index, tuple(words))


def is_content_word(word: str) -> bool:
    """Whether a word may be replaced: alphabetic, and neither a function word nor a negation."""
    return word.isalpha() and word.lower() not in FUNCTION_WORDS | NEGATIONS


def _capitalise_like(word: str, other: str) -> str:
    return other.capitalize() if word[:1].isupper() else other


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
