"""Phases of the states of a question and its passage through the layers (vanaken2019).

The supporting fact is the sentence of the passage that contains the answer, as in VisBERT. Entities are the annotated
ones, or else runs of capitalised words inside a sentence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from bertology.analyses.declaration import analysis
from bertology.analyses.planar_projection import ProjectionMethod, project_to_plane
from bertology.arrays import Array, FloatArray
from bertology.corpus.sentence import Sentence, Span
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_mean
from bertology.numerics.kmeans import MAX_CLUSTERS, MIN_CLUSTERS, gaussian_reference, kmeans_by_silhouette, purity
from bertology.recording.recording import Recording
from bertology.results.illustrations import Trajectory
from bertology.results.shapes import LayerCurve

QaPhasesView = Literal["layers", "trajectory"]
IndexArray = NDArray[np.intp]

SENTENCE_ENDINGS = frozenset(".!?")
CLASSES = ("answer", "question", "supporting fact", "entity", "other")
SILHOUETTE, PURITY, FACT_SIMILARITY, SEPARATION = MEASURES = (
    "silhouette",
    "entity cluster purity",
    "question-fact similarity",
    "answer separation",
)
UNITS: dict[str, str] = {
    SILHOUETTE: "silhouette, 0 (no clusters) to 1",
    PURITY: "proportion of tokens, 0 to 1",
    FACT_SIMILARITY: "difference of cosines, -2 to 2",
    SEPARATION: "difference of cosine distances, -2 to 2",
}
N_RANDOM_SPANS = 10


@analysis(
    question="When answering a question, at which layers do entities cluster, question and supporting fact match, and "
    "the answer separate?",
    special_tokens="Special tokens: in the model's input, not analysed.",
    citations=("vanaken2019", "vanaken2020"),
    sites=("hidden",),
    annotations=("answer_spans",),
    version=2,
    report_section="Effects of fine-tuning",
)
def qa_phases(
    recording: Recording,
    randomised: Recording | None,
    *,
    show: Annotated[
        QaPhasesView, "`layers` (each phase over all questions) or `trajectory` (one question in the plane)."
    ] = "layers",
    example: Annotated[int, "Question to draw with --show trajectory, counted from 1."] = 1,
    projection: Annotated[
        ProjectionMethod,
        "Projection to the plane: `pca`, `ica`, `tsne` or `umap` over all layers, or `aligned-pca`: PCA per layer, "
        "rotated to match the previous layer.",
    ] = "pca",
    n_clusters: Annotated[
        int,
        Interval(ge=0, le=10_000),
        "Number of k-means clusters (0: the number from 2 to 10 with the best silhouette).",
    ] = 0,
    seed: Annotated[int, "Random seed (chance baselines, projection, bootstrap)."] = 0,
) -> LayerCurve | Trajectory:
    """Progress of four phases by layer, each with its chance level: semantic clusters, entities, matching, answer.

    - silhouette: mean silhouette of the tokens' states in k-means clusters in the full space. Chance: normally
      distributed points with the same covariance.
    - entity cluster purity: for entities mentioned more than once, the proportion of their tokens in their most
      frequent cluster. Chance: equally many random tokens.
    - question-fact similarity: mean cosine of question and supporting fact (the rest of the sentence with the answer)
      minus that of question and the rest of the passage; 0: not closer. Chance: other sentences instead of the fact.
    - answer separation: mean cosine distance of the answer to the rest of the passage minus that within the rest; 0:
      the answer is like any other token. Chance: other spans of equally many tokens. `answers to other questions` are
      those of other questions on the same passage: as answer-like, but not the answer.

    Answers are names and numbers more often than other spans, and a fact shares words with its question: what layer 0
    has above chance is due to words alone, and the answer is extracted only if it is more separate than answers to
    other questions. Van Aken et al. describe the phases from plots and choose k by eye. Each passage has equal weight,
    whatever its number of questions; it is clustered with one of them. Intervals and n are over passages. Without
    annotated entities, runs of capitalised words inside a sentence are used.

    The trajectory is coloured by answer, question, supporting fact, entity and other, the first that applies. The
    released code fits a separate PCA per layer, whose axes are not comparable; here the plane is that of all layers, or
    each layer's is rotated onto the one before (Procrustes).
    """
    questions = [
        (index, question)
        for index, recorded_input in enumerate(recording.inputs)
        if (question := QuestionTokens.from_input(recorded_input)) is not None
    ]
    if not questions:
        raise Refusal(
            f"No input of {recording.corpus.name} contains a question, its passage and the answer",
            "questions on passages in SQuAD's format, short enough for the model",
            "Use such a file as --corpus, or --overflow skip or window if passages are too long",
        )
    if show == "trajectory":
        return _build_trajectory(recording, questions, example, projection, seed)
    measures, chance, other_answers = _measure_phases(recording, questions, n_clusters, seed)
    baselines = {"chance": chance, "answers to other questions": {SEPARATION: other_answers[SEPARATION]}}
    if randomised is not None:
        baselines["untrained model"] = _measure_phases(randomised, questions, n_clusters, seed)[0]
    return LayerCurve(measures=measures, baselines=baselines, units=UNITS)


@dataclass(frozen=True)
class QuestionTokens:
    """A question with its passage and answer; arrays are token positions."""

    recorded_input: RecordedInput

    @classmethod
    def from_input(cls, recorded_input: RecordedInput) -> QuestionTokens | None:
        """None if the input is not a question with a passage, or no token of the answer is in it."""
        segments = recorded_input.text.segments
        if len(segments) != 2 or not segments[1].answer_spans:
            return None
        question = cls(recorded_input)
        return question if len(question.answer) and len(question.question) else None

    @cached_property
    def non_special(self) -> IndexArray:
        """All non-special tokens."""
        return np.flatnonzero(self.recorded_input.tokens.segment_ids >= 0)

    @cached_property
    def question(self) -> IndexArray:
        """The tokens of the question."""
        return np.flatnonzero(self.recorded_input.tokens.segment_ids == 0)

    @cached_property
    def passage(self) -> IndexArray:
        """The tokens of the passage."""
        return np.flatnonzero(self.recorded_input.tokens.segment_ids == 1)

    @cached_property
    def answer(self) -> IndexArray:
        """The tokens of the first answer."""
        return self._positions(1, self.answer_span)

    def answer_to(self, other: QuestionTokens) -> IndexArray:
        """The tokens of the answer to another question on the same passage; none if the two answers overlap."""
        span = other.answer_span
        is_disjoint = span.end <= self.answer_span.start or self.answer_span.end <= span.start
        return self._positions(1, span) if is_disjoint else np.zeros(0, np.intp)

    @cached_property
    def sentences(self) -> list[IndexArray]:
        """The tokens of each sentence of the passage, without the answer; only sentences with tokens."""
        positions = (self._positions(1, span) for span in sentence_spans(self._passage_sentence))
        return [rest for tokens in positions if len(rest := np.setdiff1d(tokens, self.answer))]

    @cached_property
    def supporting_fact(self) -> IndexArray:
        """The tokens of the sentence in which the answer begins, without the answer."""
        start = self.answer_span.start
        spans = [span for span in sentence_spans(self._passage_sentence) if span.start <= start < span.end]
        return np.setdiff1d(self._positions(1, spans[0]), self.answer) if spans else np.zeros(0, np.intp)

    @cached_property
    def entities(self) -> list[IndexArray]:
        """The tokens of each entity mentioned at least twice, in the question or the passage."""
        mentions: dict[str, list[IndexArray]] = defaultdict(list)
        for index, segment in enumerate(self.recorded_input.text.segments):
            for span in entity_spans(segment):
                positions = self._positions(index, span)
                if len(positions):
                    mentions[" ".join(segment.words[span.start : span.end]).lower()].append(positions)
        return [np.concatenate(positions) for _, positions in sorted(mentions.items()) if len(positions) > 1]

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The class of each non-special token: the first of `CLASSES` that applies."""
        positions = {
            "answer": self.answer,
            "question": self.question,
            "supporting fact": self.supporting_fact,
            "entity": np.concatenate([np.zeros(0, np.intp), *self.entities]),
        }
        return tuple(
            next((name for name, members in positions.items() if token in members), CLASSES[-1])
            for token in self.non_special
        )

    @property
    def answer_span(self) -> Span:
        """The words of the first answer."""
        return (self._passage_sentence.answer_spans or (Span(0, 0),))[0]

    @property
    def passage_text(self) -> str:
        """The text of the passage, or of the window of it that is in the input."""
        return self._passage_sentence.text

    @property
    def _passage_sentence(self) -> Sentence:
        return self.recorded_input.text.segments[1]

    def _positions(self, segment: int, span: Span) -> IndexArray:
        offset = len(self.recorded_input.text.segments[0]) if segment else 0
        word_ids = self.recorded_input.tokens.word_ids
        return np.flatnonzero((word_ids >= offset + span.start) & (word_ids < offset + span.end))


IndexedQuestions = list[tuple[int, QuestionTokens]]


def sentence_spans(text: Sentence) -> Iterator[Span]:
    """The sentences of running text: up to a full stop, question or exclamation mark not followed by lower case."""
    start = 0
    for index, word in enumerate(text.words):
        following = text.words[index + 1] if index + 1 < len(text) else ""
        if not following or (word in SENTENCE_ENDINGS and not following[0].islower()):
            yield Span(start, index + 1)
            start = index + 1


def entity_spans(text: Sentence) -> Iterator[Span]:
    """The annotated entities, or else runs of capitalised words that do not begin a sentence."""
    if text.entities is not None:
        yield from text.entities
        return
    for sentence in sentence_spans(text):
        start = None
        for index in range(sentence.start + 1, sentence.end + 1):
            is_capitalised = index < sentence.end and text.words[index][:1].isupper()
            if is_capitalised and start is None:
                start = index
            elif not is_capitalised and start is not None:
                yield Span(start, index)
                start = None


def _build_trajectory(
    recording: Recording, questions: IndexedQuestions, example: int, projection: ProjectionMethod, seed: int
) -> Trajectory:
    if not 1 <= example <= len(questions):
        raise Refusal(
            f"There is no question {example}", f"a number from 1 to {len(questions)}", "Choose another --example"
        )
    index, question = questions[example - 1]
    states = np.asarray(recording["hidden"][index])[:, question.non_special]
    points = project_to_plane(states, projection, seed=seed)
    tokens = question.recorded_input.tokens.tokens
    labels = tuple(tokens[position] for position in question.non_special)
    return Trajectory(points=points, labels=labels, groups=question.classes)


def _measure_phases(
    recording: Recording, questions: IndexedQuestions, n_clusters: int, seed: int
) -> list[dict[str, Estimates]]:
    """Each measure by layer, its chance level, and its value for answers to other questions."""
    by_passage: dict[str, list[QuestionTokens]] = defaultdict(list)
    for _, question in questions:
        by_passage[question.passage_text].append(question)
    values: dict[str, list[FloatArray]] = defaultdict(list)
    # Sorted by tokens, so that a passage is clustered with the same question whatever the order of the corpus.
    for index, question in sorted(questions, key=lambda pair: pair[1].recorded_input.tokens.ids.tobytes()):
        generator = np.random.default_rng([seed, *question.recorded_input.tokens.ids.tolist()])
        example = recording.corpus[question.recorded_input.example_index]
        passage_values = values[example.segments[1].text]  # the whole passage, also if the input is a window of it
        limits = None if passage_values else (n_clusters or MIN_CLUSTERS, n_clusters or MAX_CLUSTERS)
        answers = {other.answer_span: question.answer_to(other) for other in by_passage[question.passage_text]}
        other_answers = [
            answers[span] for span in sorted(answers, key=lambda span: (span.start, span.end)) if len(answers[span])
        ]
        layers = [
            _measure_layer(states, question, limits, other_answers, generator) for states in recording["hidden"][index]
        ]
        passage_values.append(np.array(layers))
    means = np.stack([_nan_mean(np.stack(values[passage])) for passage in sorted(values)])
    estimates = bootstrap_mean(means, seed=seed)
    return [{name: estimates[:, row, column] for column, name in enumerate(MEASURES)} for row in range(3)]


def _nan_mean(values: FloatArray) -> FloatArray:
    """The mean over the first axis, ignoring NaN."""
    is_defined = np.isfinite(values)
    total = np.where(is_defined, values, 0.0).sum(0)
    return np.divide(total, is_defined.sum(0), out=np.full_like(total, np.nan), where=is_defined.any(0))


def _measure_layer(
    states: Array,
    question: QuestionTokens,
    cluster_limits: tuple[int, int] | None,
    other_answers: list[IndexArray],
    generator: np.random.Generator,
) -> FloatArray:
    """(3, measure) the measures of one layer, their chance levels, and their values for answers to other questions.

    `cluster_limits` are the minimum and maximum number of clusters; None: no clustering.
    """
    states = states.astype(np.float64)
    units = states / np.linalg.norm(states, axis=1, keepdims=True).clip(min=1e-12)
    cosines = units @ units.T
    values = np.full((3, len(MEASURES)), np.nan)
    values[:2, :2] = _clustering(states, question, cluster_limits, generator)
    values[:2, 2] = _fact_similarity(cosines, question)
    values[:, 3] = _answer_separation(cosines, question, other_answers, generator)
    return values


def _clustering(
    states: FloatArray,
    question: QuestionTokens,
    cluster_limits: tuple[int, int] | None,
    generator: np.random.Generator,
) -> tuple[list[float], list[float]]:
    """Silhouette and entity cluster purity, and their chance levels."""
    undefined = [np.nan, np.nan], [np.nan, np.nan]
    if cluster_limits is None:
        return undefined
    points = states[question.non_special]
    clusters = kmeans_by_silhouette(points, seed=0, min_clusters=cluster_limits[0], max_clusters=cluster_limits[1])
    if clusters is None:
        return undefined
    n_clusters = clusters.n_clusters
    reference = kmeans_by_silhouette(
        gaussian_reference(points, generator), seed=0, min_clusters=n_clusters, max_clusters=n_clusters
    )
    entities = [np.searchsorted(question.non_special, entity) for entity in question.entities]
    random_purities = [
        purity(clusters.labels, [generator.choice(len(points), len(entity), replace=False) for entity in entities])
        for _ in range(N_RANDOM_SPANS)
    ]
    measured = [clusters.silhouette, purity(clusters.labels, entities)]
    return measured, [reference.silhouette if reference else float("nan"), float(np.mean(random_purities))]


def _fact_similarity(cosines: FloatArray, question: QuestionTokens) -> tuple[float, float]:
    """How much closer the question is to the supporting fact than to the rest, and the same for other sentences."""

    def margin(sentence: IndexArray) -> float:
        rest = np.setdiff1d(question.passage, np.concatenate([sentence, question.answer]))
        if not len(rest) or not len(sentence):
            return float("nan")
        rows = cosines[question.question]
        return float(rows[:, sentence].mean() - rows[:, rest].mean())

    fact = question.supporting_fact
    others = [margin(sentence) for sentence in question.sentences if not np.array_equal(sentence, fact)]
    return margin(fact), _average(others)


def _answer_separation(
    cosines: FloatArray, question: QuestionTokens, other_answers: list[IndexArray], generator: np.random.Generator
) -> tuple[float, float, float]:
    """How much farther the answer is from the rest of the passage than the rest from itself; and for other spans."""
    passage, answer = question.passage, question.answer

    def separation(span: IndexArray) -> float:
        rest = np.setdiff1d(passage, span)
        if len(rest) < 2:
            return float("nan")
        inside = cosines[np.ix_(rest, rest)]
        within = (inside.sum() - np.trace(inside)) / (len(rest) * (len(rest) - 1))
        return float(within - cosines[np.ix_(span, rest)].mean())

    size = len(answer)
    starts = [start for start in range(len(passage) - size + 1) if answer[0] not in passage[start : start + size]]
    sample = generator.choice(starts, min(N_RANDOM_SPANS, len(starts)), replace=False) if starts else []
    chance = [separation(passage[start : start + size]) for start in sample]
    return separation(answer), _average(chance), _average([separation(span) for span in other_answers])


def _average(values: list[float]) -> float:
    return float(np.mean(values)) if values else float("nan")
