"""Gold targets of a task head from the corpus: a class, a tag for each word, or the ends of an answer.

All inputs are checked before the first pass, so that missing annotations and unknown labels are refused early.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from bertology.arrays import IntArray
from bertology.corpus.bio import SPAN_TAG_ANNOTATIONS, TAG_ANNOTATIONS, detect_scheme, word_tags
from bertology.corpus.corpus import Corpus
from bertology.corpus.sentence import Sentence
from bertology.encoder.encoder import Encoder, TaskEncoder
from bertology.encoder.token_batch import RecordedInput
from bertology.encoder.tokens import span_tokens
from bertology.errors import Refusal

GoldTargets = Callable[[RecordedInput], IntArray]
"""The targets of an input: the index of its class, (1,); the index of the tag of each token, (token,), or
`IGNORE_INDEX`; the positions of the first and the last token of its answer, (2,)."""

GOLD_TASK_HEADS = ("label", "token", "answer_start")
"""Task heads with gold targets; the first one that the model has is used."""
IGNORE_INDEX = -100
PREDICTION_HINT = "or use --objective prediction: the log-probability of the model's prediction"


def gold_targets(encoder: Encoder, corpus: Corpus, inputs: Sequence[RecordedInput]) -> GoldTargets:
    """A function that returns the gold targets of each of these inputs."""
    task_head = next(task_head for task_head in GOLD_TASK_HEADS if task_head in encoder.task_heads)
    if task_head == "answer_start":
        return _answer_targets(corpus, inputs)
    assert isinstance(encoder, TaskEncoder), "other encoders have no task heads"
    read_targets = _class_targets if task_head == "label" else _tag_targets
    return read_targets(encoder.labels, encoder.name, corpus, inputs)


def _class_targets(labels: Sequence[str], model: str, corpus: Corpus, inputs: Sequence[RecordedInput]) -> GoldTargets:
    from bertology.encoder.task_heads import label_ids

    examples = sorted({recorded.example_index for recorded in inputs})
    gold_labels = [corpus[example].label for example in examples]
    if None in gold_labels:
        raise Refusal(
            f"{corpus.name} has an example without a label",
            "a label for every example, for --objective gold",
            f"Use a labelled corpus, {PREDICTION_HINT}",
        )
    targets = dict(zip(examples, label_ids(labels, gold_labels, model), strict=True))
    return lambda recorded: np.array([targets[recorded.example_index]])


def _tag_targets(labels: Sequence[str], model: str, corpus: Corpus, inputs: Sequence[RecordedInput]) -> GoldTargets:
    """The tag of each word at its first token, from the annotation whose tags the model knows."""
    from bertology.encoder.task_heads import label_index

    if any(recorded.window_index for recorded in inputs):
        raise Refusal(
            "An input is split into windows, which --objective gold does not support for tags",
            "inputs that fit the model",
            "Use --overflow skip or --overflow truncate",
        )
    index = label_index(labels)
    texts = {(recorded.example_index, recorded.input_index) for recorded in inputs}
    segments = [segment for example, text in sorted(texts) for segment in corpus[example].text_inputs[text].segments]
    annotation = _select_annotation(index, labels, segments, corpus.name, model)

    def tag_ids(recorded_input: RecordedInput) -> IntArray:
        full_text = corpus[recorded_input.example_index].text_inputs[recorded_input.input_index]
        tags: list[str] = []
        for segment, truncated in zip(full_text.segments, recorded_input.text.segments, strict=True):
            # Tags come from the full text, because a truncated one has lost relations and cut spans.
            tags.extend((word_tags(segment, annotation) or ())[: len(truncated)])
        targets = np.full(len(recorded_input.tokens), IGNORE_INDEX, np.int64)
        for word, positions in recorded_input.tokens.positions_by_word().items():
            targets[positions[0]] = index[tags[word].lower()]
        return targets

    return tag_ids


def _select_annotation(
    label_ids: Mapping[str, int], labels: Sequence[str], segments: Sequence[Sentence], corpus: str, model: str
) -> str:
    """The annotation that every text has and whose tags the model knows; if several, the one with most tags."""
    n_tags: dict[str, int] = {}
    problems: dict[str, str] = {}
    unknown: dict[str, str] = {}
    for annotation in TAG_ANNOTATIONS:
        by_segment = [word_tags(segment, annotation) for segment in segments]
        tags = {tag for segment_tags in by_segment for tag in segment_tags or ()}
        unknown_tags = sorted(tag for tag in tags if tag.lower() not in label_ids)
        n_missing = sum(segment_tags is None for segment_tags in by_segment)
        if n_missing == len(by_segment):
            continue
        if unknown_tags:
            # An annotation of which the model knows no tag at all is unlikely to be the intended one.
            reasons = unknown if len(unknown_tags) == len(tags) else problems
            reasons[annotation] = f"has tags the model does not know ({', '.join(unknown_tags[:5])})"
        elif annotation in SPAN_TAG_ANNOTATIONS and detect_scheme([sorted(labels)]) != "bio":
            # B- and I- have another meaning in a model with E- and S- tags, or with I- tags alone.
            problems[annotation] = "has spans, tagged O, B- and I-, and the model's tags follow another scheme"
        elif n_missing:
            problems[annotation] = f"is missing in {n_missing} of {len(by_segment)} texts"
        else:
            n_tags[annotation] = len(tags)
    if n_tags:
        return max(n_tags, key=lambda annotation: n_tags[annotation])
    reasons = "; ".join(f"`{name}` {reason}" for name, reason in (problems or unknown).items()) or "there is none"
    raise Refusal(
        f"{corpus} has no annotation that gives every word a tag of {model}: {reasons}",
        f"a tag for every word, for --objective gold: one of {', '.join(labels)}, or their indices from 0",
        f"Use a corpus with such tags, choose a model trained on these tags, {PREDICTION_HINT}",
    )


def _answer_targets(corpus: Corpus, inputs: Sequence[RecordedInput]) -> GoldTargets:
    """The ends of the first answer that the passage contains; the first token, as in fine-tuning, if there is none."""
    for index in sorted({recorded.example_index for recorded in inputs}):
        example = corpus[index]
        if example.kind != "question" or example.segments[1].answer_spans is None:
            raise Refusal(
                f"Example {index + 1} of {corpus.name} is not a question with answers",
                "questions about a passage that contains their answers, for --objective gold",
                f"Use such a corpus, {PREDICTION_HINT}",
            )

    def answer_positions(recorded_input: RecordedInput) -> IntArray:
        question, passage = recorded_input.text.segments
        first_word = len(question)
        for span in (passage.answer_spans or ())[:1]:
            positions = span_tokens(recorded_input.tokens.word_ids, first_word + span.start, first_word + span.end)
            if positions is not None:
                return positions
        return np.zeros(2, np.int64)

    return answer_positions
