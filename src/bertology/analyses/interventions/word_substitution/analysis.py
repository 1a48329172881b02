"""Word substitutions that change the prediction of a classifier (TextFooler, jin2020)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from annotated_types import Ge, Interval

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.declaration import analysis
from bertology.analyses.evaluation.answers import example_item
from bertology.analyses.evaluation.options import ExampleOverflowOption, SampleSizeOption, SeedOption
from bertology.analyses.evaluation.score_change import MAJORITY_CLASS, reference_score
from bertology.analyses.interventions.word_substitution.candidates import (
    PartOfSpeechLexicon,
    SentenceEmbedder,
    load_candidates,
    static_embedder,
)
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import load_corpus
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.metrics import Counts
from bertology.estimates.resampling import bootstrap_mean, exact_where_unanimous
from bertology.number_ranges import COSINE
from bertology.results.answers import Answer
from bertology.results.illustrations import Examples, HighlightedSentence
from bertology.results.measured_shape import MODEL_SERIES
from bertology.results.shapes import Table

if TYPE_CHECKING:
    from bertology.analyses.evaluation.evaluation import Evaluation
    from bertology.analyses.interventions.word_substitution.attack import SubstitutionOutcome

ACCURACY, SUCCESS_RATE = "accuracy under attack", "attack success rate"
PERTURBED, SIMILARITY, QUERIES = "perturbed words (proportion)", "text similarity", "queries"
UNITS = {
    ACCURACY: "accuracy, 0 to 1",
    SUCCESS_RATE: "proportion of correctly classified examples, 0 to 1",
    PERTURBED: "proportion of words, 0 to 1",
    SIMILARITY: "cosine, -1 to 1",
    QUERIES: "model queries per example",
}
ALL_EXAMPLES = "all examples"
CLEAN_INPUT, RANDOM_EDITS, CHANCE = "clean input", "random edits (same amount)", "chance"


@analysis(
    question="How many words must be replaced by similar ones before the prediction changes (TextFooler)?",
    special_tokens="Special tokens: included. Classes are read at the first token.",
    citations=("jin2020",),
    version=2,
    needs_task_head="label",
    test_corpus="generated:nli@0:6",
    answers=("scores",),
)
def word_substitution(
    encoder: Encoder,
    corpus: Corpus,
    cache: AnalysisCache,
    *,
    show: Annotated[
        Literal["scores", "examples"], "`scores` or `examples` (attacked texts with the replaced words)."
    ] = "scores",
    sample_size: SampleSizeOption = 40,
    synonym_source: Annotated[
        str,
        "Where replacement words come from: glove:PATH, static:MODEL or wordnet; empty: the model's input embeddings.",
    ] = "",
    n_synonyms: Annotated[int, Interval(ge=1, le=100_000), "Number of replacement candidates per word."] = 20,
    min_cosine: Annotated[
        float, COSINE, "Minimum cosine between two word vectors for the words to count as substitutes."
    ] = 0.4,
    same_pos: Annotated[bool, "Only replacements that can have the same part of speech."] = True,
    pos_corpus: Annotated[str, "Treebank that parts of speech are looked up in."] = "english",
    similarity_model: Annotated[
        str,
        "Model whose mean hidden state measures the similarity of two texts; empty: the mean of the attacked model's "
        "input embeddings.",
    ] = "",
    min_similarity: Annotated[float, COSINE, "Minimum cosine between the attacked and the original text."] = 0.8,
    max_queries: Annotated[int, Ge(1), "Maximum number of model queries per example."] = 300,
    seed: SeedOption = 0,
    overflow: ExampleOverflowOption = "auto",
) -> Table | Examples:
    """Accuracy (0 to 1) after words were replaced one by one by similar ones, and the size of the attack.

    The search is TextFooler's: words are ranked by the drop of the predicted probability without them, and each in turn
    is replaced by the candidate that changes the prediction with the most similar text, otherwise by the one with the
    lowest gold probability. Function words, negations and non-alphabetic words are not replaced; in a pair the second
    text is attacked, in multiple choice the passage. A wrongly classified example is not attacked and counts as wrong.
    A text longer than the model's maximum input is cut before it is attacked. Rows are all examples, and those of each
    gold class. The baseline `random edits (same amount)` replaces as many words of the same kind, at random positions,
    by random ones of the corpus: an attack must cost more than that. `attack success rate` is over correctly classified
    examples; `perturbed words (proportion)`, `text similarity` and `queries` are over attacked ones. Differences from
    the paper: word vectors are not counter-fitted, so similar words may be opposites (good, bad) and a changed
    prediction may be right; parts of speech come from a treebank or from suffixes; text similarity is the cosine of
    mean hidden states, not of a sentence encoder. A search that exhausts its queries counts with the text it has
    reached.
    """
    # Listing analyses must not import torch.
    from bertology.analyses.interventions.word_substitution.attack import SearchLimits, SubstitutionAttack

    if not -1 <= min_cosine <= 1 or not -1 <= min_similarity <= 1:
        raise Refusal(
            f"--min-cosine is {min_cosine} and --min-similarity is {min_similarity}",
            "cosines, numbers from -1 to 1",
            "Omit them for 0.4 and 0.8",
        )
    candidates = load_candidates(synonym_source, encoder, n_synonyms=n_synonyms, min_cosine=min_cosine)
    attack = SubstitutionAttack(
        encoder,
        corpus,
        cache,
        sample_size=sample_size,
        overflow=overflow,
        candidates=candidates,
        lexicon=PartOfSpeechLexicon(load_corpus(pos_corpus)) if same_pos else None,
        embedder=SentenceEmbedder(load(similarity_model)) if similarity_model else static_embedder("", encoder),
        limits=SearchLimits(min_similarity, max_queries),
        seed=seed,
    )
    outcomes = attack.run()
    if show == "examples":
        return Examples(examples=tuple(_build_example(outcome) for outcome in outcomes if outcome.search.edits))
    groups = {ALL_EXAMPLES: outcomes}
    for label in sorted({str(outcome.example.label) for outcome in outcomes}):
        groups[label if attack.labels else f"option {int(label) + 1}"] = [
            outcome for outcome in outcomes if str(outcome.example.label) == label
        ]
    table = _build_table(groups, attack.evaluation, max_queries, seed)
    return table.with_answers(lambda: _answers(attack.evaluation, outcomes))


def _answers(evaluation: Evaluation, outcomes: Sequence[SubstitutionOutcome]) -> Iterator[Answer]:
    """Each example before and after the attack, and after random edits.

    `prediction` and the size of the attack are those of the search; an example that was wrong before is not attacked.
    """
    # Listing analyses must not import torch.
    from bertology.analyses.text_attacks.partial_scores import distinct_examples

    for number, (example, outcome) in enumerate(zip(distinct_examples(evaluation), outcomes, strict=True)):
        item = example_item(example, number)
        edits = "; ".join(f"{old} > {new}" for _, old, new in outcome.search.edits)
        no_attack: Answer = {"prediction": None, "edits": None, "similarity": None, "queries": None}
        yield item | {"series": CLEAN_INPUT, **no_attack, "correct": float(outcome.correct_before)}
        yield item | {
            "series": MODEL_SERIES,
            "prediction": outcome.prediction,
            "edits": edits,
            "similarity": outcome.similarity,
            "queries": outcome.search.n_queries,
            "correct": float(outcome.correct_after),
        }
        random_edits = no_attack | {"similarity": outcome.random_similarity}
        yield item | {"series": RANDOM_EDITS, **random_edits, "correct": float(outcome.random_correct)}


def _build_table(
    groups: Mapping[str, Sequence[SubstitutionOutcome]], evaluation: Evaluation, max_queries: int, seed: int
) -> Table:
    largest = max((outcomes for name, outcomes in groups.items() if name != ALL_EXAMPLES), key=len)
    majority = largest[0].example.label

    def mean(value: Callable[[SubstitutionOutcome], float], *, attacked_only: bool = False) -> Estimates:
        rows = [
            [value(outcome) if outcome.correct_before or not attacked_only else np.nan for outcome in outcomes]
            for outcomes in groups.values()
        ]
        return Estimates.stack([bootstrap_mean(np.array(row, np.float64), seed=seed) for row in rows])

    def attacked_mean(value: Callable[[SubstitutionOutcome], float]) -> Estimates:
        return mean(value, attacked_only=True)

    def proportion(value: Callable[[SubstitutionOutcome], float], *, attacked_only: bool = False) -> Estimates:
        return exact_where_unanimous(mean(value, attacked_only=attacked_only))

    perturbed = proportion(
        lambda outcome: len(outcome.search.edits) / max(1, len(outcome.search.words)), attacked_only=True
    )
    attacked = [[outcome for outcome in outcomes if outcome.correct_before] for outcomes in groups.values()]
    chance = {CHANCE: {ACCURACY: mean(lambda outcome: 1 / max(1, len(outcome.example.segments) - 2))}}
    return Table(
        row_names=tuple(groups),
        measures={
            ACCURACY: proportion(lambda outcome: outcome.correct_after),
            SUCCESS_RATE: proportion(lambda outcome: 1.0 - outcome.correct_after, attacked_only=True),
            PERTURBED: perturbed,
            SIMILARITY: attacked_mean(lambda outcome: outcome.similarity),
            QUERIES: attacked_mean(lambda outcome: outcome.search.n_queries),
        },
        baselines={
            CLEAN_INPUT: {ACCURACY: proportion(lambda outcome: outcome.correct_before)},
            RANDOM_EDITS: {
                ACCURACY: proportion(lambda outcome: outcome.random_correct),
                SUCCESS_RATE: proportion(lambda outcome: 1.0 - outcome.random_correct, attacked_only=True),
                PERTURBED: perturbed,
                SIMILARITY: attacked_mean(lambda outcome: outcome.random_similarity),
            },
            MAJORITY_CLASS: {ACCURACY: proportion(lambda outcome: outcome.example.label == majority)},
            **(chance if evaluation.task == "choice" else {}),
            "maximum queries": {QUERIES: Estimates.exact(np.full(len(groups), float(max_queries)))},
        },
        units=UNITS,
        attributes={
            "n_examples": tuple(len(outcomes) for outcomes in groups.values()),
            "n_attacked": tuple(len(outcomes) for outcomes in attacked),
            "n_flipped": tuple(sum(not outcome.correct_after for outcome in outcomes) for outcomes in attacked),
            "n_budget_exhausted": tuple(
                sum(outcome.search.budget_exhausted for outcome in outcomes) for outcomes in attacked
            ),
        },
        sample=evaluation.sample() | {"examples": len(groups[ALL_EXAMPLES])},
        reference=reference_score(
            CLEAN_INPUT,
            [_counts(groups[ALL_EXAMPLES], lambda outcome: outcome.correct_before)],
            MAJORITY_CLASS,
            _counts(groups[ALL_EXAMPLES], lambda outcome: outcome.example.label == majority),
            seed,
        ),
    )


def _counts(outcomes: Sequence[SubstitutionOutcome], is_correct: Callable[[SubstitutionOutcome], bool]) -> Counts:
    return Counts(np.array([float(is_correct(outcome)) for outcome in outcomes]), np.ones(len(outcomes)))


def _build_example(outcome: SubstitutionOutcome) -> HighlightedSentence:
    edits = "; ".join(f"{old} → {new}" for _, old, new in outcome.search.edits)
    label = outcome.example.label
    gold = label if outcome.example.kind != "choice" else f"option {int(label or 0) + 1}"
    change = f"{gold} → {outcome.prediction}" if not outcome.correct_after else f"still {gold}"
    return HighlightedSentence(
        words=outcome.search.words,
        highlights={"replaced": tuple(index for index, _, _ in outcome.search.edits)},
        score=outcome.search.probability,
        caption=f"{change}: {edits} (queries: {outcome.search.n_queries}, similarity: {outcome.similarity:.2f})",
    )
