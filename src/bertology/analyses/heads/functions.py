"""Functions of heads: a fixed position, a syntactic relation, the rarest word (Voita et al. 2019, section 5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import numpy as np
from annotated_types import Interval

from bertology.analyses.declaration import analysis
from bertology.analyses.head_grids import UNTRAINED_MODEL
from bertology.analyses.head_selection.answers import describe_choice, describe_link
from bertology.analyses.head_selection.functions import (
    STRONGEST_WORD,
    FunctionThresholds,
    HeadFunction,
    assign_functions,
    count_function_links,
    function_kind,
    function_links,
    rarest_words,
)
from bertology.analyses.head_selection.gold_links import GoldLink, LinkCounts, LinkExtractor
from bertology.analyses.head_selection.selection import SIGNIFICANCE_LEVEL, ZERO, head_attributes
from bertology.analyses.label_criteria import POSITION, WORD_CHOICE, HeadLabelling
from bertology.corpus.word_frequencies import WordFrequencies, load_frequencies
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_proportion
from bertology.number_ranges import PROPORTION
from bertology.recording.recording import Recording
from bertology.results.answers import Answer
from bertology.results.illustrations import Examples, HighlightedSentence
from bertology.results.measured_shape import MODEL_SERIES
from bertology.results.shapes import Table

HeadFunctionsView = Literal["heads", "examples"]
N_EXAMPLES, MIN_LINKS, MAX_PAIRS = 3, 2, 3
KIND_ORDER = ("positional", "syntactic", "rarest word")
COUNTEREXAMPLE = "counterexample"
SCORE, GAIN, P_VALUE = "score", "score - baseline", "p (Holm)"

_PredictedLink = tuple[int, int, tuple[int, ...]]
"""Source, predicted word and targets."""


@analysis(
    question="Which heads have a function: attending to a fixed position, along a syntactic relation, "
    "or to the rarest word?",
    special_tokens="Special tokens: excluded as sources and targets.",
    citations=("voita2019", "clark2019"),
    sites=(STRONGEST_WORD,),
    annotations=("governors", "relations"),
    version=3,
    answers=("heads",),
    labels_heads=HeadLabelling(
        rank=1, criteria={"positional": POSITION, "syntactic": WORD_CHOICE, "rarest word": WORD_CHOICE}
    ),
)
def functions(
    recording: Recording,
    randomised: Recording | None,
    *,
    show: Annotated[
        HeadFunctionsView, "`heads` (function, score and baseline of every head) or `examples` (sentences)."
    ] = "heads",
    positional_threshold: Annotated[
        float, PROPORTION, "Minimum proportion of words whose most attended word is at one offset."
    ] = POSITION.min_score,
    syntactic_threshold: Annotated[
        float, Interval(ge=-1, le=1), "Minimum gain over the baseline for a relation, and for the rarest word."
    ] = WORD_CHOICE.min_margin,
    rare_word_threshold: Annotated[
        float, PROPORTION, "Minimum proportion of words that attend most to the rarest word of the sentence."
    ] = WORD_CHOICE.min_score,
    n_frequent_words: Annotated[int, "This many of the most frequent words never count as the rarest word."] = 500,
    frequency_corpus: Annotated[
        str, "Large corpus that word frequencies are counted in; empty: the built-in list for English."
    ] = "",
    min_examples: Annotated[int, "Minimum number of examples for a relation to be a function."] = 20,
    seed: Annotated[int, "Random seed (random halves, bootstrap)."] = 0,
) -> Table | Examples:
    """Proportion of words from which a head attends most to the target of its function: 0 never, 1 always.

    - positional: the strongest target of nine in ten words is at one distance, one to three words before or after.
    - syntactic: for a relation and a direction, the strongest target is the governor (or a dependent) 10 points more
      often than the word at the most frequent distance of the relation.
    - rarest word: the strongest target of every second word is the rarest word of the sentence, in sentences whose
      rarest word is not one of the 500 most frequent. Voita et al. give no threshold; one half is our choice. Words are
      counted in a large English text (see the data card) or in --frequency-corpus, never in the analysed corpus, where
      most rare words occur once. Of several words with the lowest frequency, such as words not in the list, a random
      one is taken, so that heads score at chance there; these sentences are counted below the table. Rare words are
      split into many tokens, over which attention to a word is summed, so that even uniform attention finds half of
      them: the baseline is the word with most tokens (or the best fixed offset), and a head must be 10 points better.

    The function of a head is selected on one half of the sentences (the one with the lowest p value among those whose
    threshold it reaches, positions first) and scored on the other half, over 100 random halves in both directions.
    `function` is the one selected most often, `chosen_in` the proportion of selections that chose it; score, baseline
    and gain are means over these, on the halves that did not select it. A function is confirmed only if at least half
    of the selections chose it, the score reaches the threshold as well, its interval lies above that of the baseline,
    and a paired test is significant after Holm's correction for all heads. The test is combined over all splits, and a
    half counts as no gain if the other half selected another function. The baseline is chance for positions and the
    best fixed offset on all sentences for relations; a further baseline is the best head of the untrained model on all
    sentences. Voita et al. count the word itself among the targets; here, as in Clark et al., it is excluded. Attention
    to a word is the sum over its tokens, attention from a word the mean.

    Heads with a function come first. Their notes give three sentences that show the function and, if there is one, one
    that does not, with pairs of words; for heads without a function the attributes name the closest one.
    """
    frequencies = load_frequencies(frequency_corpus)
    frequent_words = frequencies.most_frequent(n_frequent_words)

    def extract_links(recorded_input: RecordedInput) -> list[GoldLink]:
        return function_links(recorded_input, frequencies, frequent_words)

    counts = count_function_links(recording, extract_links)
    head_functions = assign_functions(
        counts,
        FunctionThresholds(positional_threshold, syntactic_threshold, rare_word_threshold),
        min_examples=min_examples,
        seed=seed,
    )
    if not head_functions:
        raise Refusal(
            f"{recording.corpus.name} is too small to assign functions: none has {min_examples} examples in two halves",
            f"sentences of different words with at least {min_examples} neighbours",
            "Use a larger corpus, or lower --min-examples",
        )
    head_functions.sort(
        key=lambda function: (
            not function.is_confirmed,
            KIND_ORDER.index(function_kind(function.label)) if function.is_confirmed else 0,
            function.head,
        )
    )
    examples = _FunctionExamples(recording, extract_links)
    if show == "examples":
        confirmed = [function for function in head_functions if function.is_confirmed]
        return Examples(examples=tuple(example for function in confirmed for example in examples.select(function)))
    untrained = None
    if randomised is not None:
        untrained = count_function_links(randomised, extract_links, counts.labels)
    table = _build_table(head_functions, counts, untrained, examples, seed)
    table = table.model_copy(update={"sample": _rare_word_sample(recording, frequencies, frequent_words)})
    return table.with_answers(lambda: examples.answers(head_functions))


def _rare_word_sample(
    recording: Recording, frequencies: WordFrequencies, frequent_words: frozenset[str]
) -> dict[str, int]:
    """How many inputs have a rarest word, in how many it is tied, and how many words have no frequency."""
    rarest = [rarest_words(recorded_input, frequencies, frequent_words) for recorded_input in recording.inputs]
    words = [word for recorded_input in recording.inputs for word in recorded_input.text.words]
    return {
        "inputs with a rarest word": sum(map(bool, rarest)),
        "of these with tied rarest words (scored at chance)": sum(len(forms) > 1 for forms in rarest),
        "words": len(words),
        "words without a frequency": sum(frequencies[word] == 0 for word in words),
    }


def _build_table(
    head_functions: list[HeadFunction],
    counts: LinkCounts,
    randomised: LinkCounts | None,
    examples: _FunctionExamples,
    seed: int,
) -> Table:
    scores = Estimates.stack([function.accuracy for function in head_functions])
    labels = [counts.labels.index(function.label) for function in head_functions]
    p = np.array([function.p for function in head_functions])
    baselines: dict[str, dict[str, Estimates]] = {
        "baseline": {SCORE: Estimates.stack([function.baseline for function in head_functions])},
        ZERO: {GAIN: Estimates.exact(np.zeros(len(head_functions)))},
        "significance level": {P_VALUE: Estimates.exact(np.full(len(head_functions), SIGNIFICANCE_LEVEL))},
    }
    if randomised is not None:
        totals = randomised.correct.sum(0).reshape(-1, len(randomised.labels))
        best = [int(totals[:, label].argmax()) for label in labels]
        correct = np.stack([randomised.candidates(label)[:, head] for label, head in zip(labels, best, strict=True)], 1)
        baselines[UNTRAINED_MODEL] = {SCORE: bootstrap_proportion(correct, randomised.total[:, labels], seed=seed)}
    confirmed = [function for function in head_functions if function.is_confirmed]
    return Table(
        measures={
            SCORE: scores,
            GAIN: Estimates.stack([function.gain for function in head_functions]),
            P_VALUE: Estimates.exact(p, np.where(np.isfinite(p), scores.n, 0)),
        },
        baselines=baselines,
        units={
            SCORE: "proportion of examples, 0 to 1",
            GAIN: "difference of proportions, -1 to 1",
            P_VALUE: "probability, 0 to 1",
        },
        row_names=tuple(str(function.head) for function in head_functions),
        attributes={
            **head_attributes([function.head for function in head_functions]),
            "function": tuple(f.label if f.is_confirmed else None for f in head_functions),
            "function_kind": tuple(function_kind(f.label) if f.is_confirmed else None for f in head_functions),
            "closest_function": tuple(None if f.is_confirmed else f.label for f in head_functions),
            "chosen_in": tuple(round(function.chosen_in, 3) for function in head_functions),
        },
        notes={str(function.head): examples.note(function) for function in confirmed},
    )


class _FunctionExamples:
    """Sentences that show a head's function best, and the one that shows it least."""

    def __init__(self, recording: Recording, extract_links: LinkExtractor) -> None:
        self._recording = recording
        self._links = [extract_links(recorded_input) for recorded_input in recording.inputs]

    def note(self, function: HeadFunction) -> str:
        """The examples in one line."""
        return " | ".join(
            f"{self._summary(function, index, description)}: {' '.join(self._recording.inputs[index].text.words)}"
            for index, description in self._rank(function)
        )

    def select(self, function: HeadFunction) -> list[HighlightedSentence]:
        """Three sentences that show the function and one that does not, if any, each with at least two links."""
        examples: list[HighlightedSentence] = []
        for index, description in self._rank(function):
            links = self._predicted_links(function, index)
            examples.append(
                HighlightedSentence(
                    words=self._recording.inputs[index].text.words,
                    highlights={"from": tuple(link[0] for link in links), "to": tuple(link[1] for link in links)},
                    score=_n_correct(links) / len(links),
                    caption=f"{function.head} {function.label}: {self._summary(function, index, description)}",
                )
            )
        return examples

    def answers(self, head_functions: Sequence[HeadFunction]) -> Iterator[Answer]:
        """The word that each head chooses for each example of its function, or of the closest one, in all sentences."""
        for function in head_functions:
            condition = {"series": MODEL_SERIES, "head": str(function.head), "function": function.label}
            for index, recorded_input in enumerate(self._recording.inputs):
                for link, (_, predicted, targets) in self._chosen_words(function, index):
                    choice = describe_choice(recorded_input, predicted, is_head=True)
                    correct = {"correct": float(predicted in targets)}
                    yield describe_link(recorded_input, link) | condition | choice | correct

    def _rank(self, function: HeadFunction) -> list[tuple[int, str]]:
        """The indices of the inputs shown, and whether each is an example or a counterexample."""
        ranked: list[tuple[float, str, int]] = []
        for index in range(len(self._links)):
            links = self._predicted_links(function, index)
            if len(links) >= MIN_LINKS:
                accuracy = float(np.mean([predicted in targets for _, predicted, targets in links]))
                ranked.append((-accuracy, " ".join(self._recording.inputs[index].text.words), index))
        ranked.sort(key=lambda row: (row[0], len(row[1]), row[1]))
        strongest = [(index, f"example {number}") for number, (_, _, index) in enumerate(ranked[:N_EXAMPLES], 1)]
        # Where every link of every sentence is found there is no counterexample.
        weakest = [(index, COUNTEREXAMPLE) for accuracy, _, index in ranked[N_EXAMPLES:][-1:] if accuracy > -1]
        return [*strongest, *weakest]

    def _predicted_links(self, function: HeadFunction, index: int) -> list[_PredictedLink]:
        """Source, predicted word and targets of each link of the function in one input."""
        return [predicted for _, predicted in self._chosen_words(function, index)]

    def _chosen_words(self, function: HeadFunction, index: int) -> list[tuple[GoldLink, _PredictedLink]]:
        """The links of the function in one input, with the words that the head predicts."""
        strongest = self._recording[STRONGEST_WORD][index][(*function.head, 0)]
        present = set(self._recording.inputs[index].tokens.word_ids.tolist())
        return [
            (link, (link.source, int(strongest[link.source]), link.targets))
            for link in self._links[index]
            if function.label in link.labels and {link.source, *link.targets} <= present
        ]

    def _summary(self, function: HeadFunction, index: int, description: str) -> str:
        links = self._predicted_links(function, index)
        words = self._recording.inputs[index].text.words
        shown = sorted(links, key=lambda link: (link[1] in link[2]) == (description == COUNTEREXAMPLE))
        pairs = ", ".join(f"{words[source]} > {words[predicted]}" for source, predicted, _ in shown[:MAX_PAIRS])
        return f"{description}, {_n_correct(links)} of {len(links)} ({pairs})"


def _n_correct(links: Sequence[_PredictedLink]) -> int:
    return sum(predicted in targets for _, predicted, targets in links)
