"""Inputs that are too long: refused, skipped, truncated or split into windows, counted, and validly aligned."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recording.material import FEW_EXAMPLES, mixed, random_sentence, tiny

from bertology.corpus.corpus import Corpus, corpus_from_sentences
from bertology.corpus.example import Example, TextInput
from bertology.corpus.sentence import Sentence, Span, sentence_from_words
from bertology.encoder.builtin import TINY_WORDS
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from bertology.encoder.token_batch import RecordedInput
from bertology.encoder.tokens import SpecialToken, TokenisedInput
from bertology.errors import Refusal
from bertology.recording.manifest import TOKEN_ARRAYS
from bertology.recording.overflow import Overflow, SentenceSlicer, cut_example, fit_examples, slice_sentence
from bertology.recording.plan import RecordingConfig, make_plan
from bertology.recording.recorder import record

LONG_WORD = "abcdefghi" * 10
"""One token per letter; beyond a hundred letters the tokeniser would make it one unknown token."""


def _long_corpus(n_words: int, *, n_segments: int = 1, long_word: int | None = None, seed: int = 0) -> Corpus:
    """One example; word `long_word` of its last segment is replaced by `LONG_WORD`."""
    rng = random.Random(seed)
    segments = [random_sentence(rng, n_words) for _ in range(n_segments)]
    if long_word is not None:
        words = list(segments[-1].words)
        words[long_word] = LONG_WORD
        segments[-1] = sentence_from_words(words)
    return Corpus((Example(tuple(segments), "pair" if n_segments > 1 else "sentence"),), name="long")


def _plan(corpus: Corpus, overflow: Overflow, limit: int) -> tuple[tuple[RecordedInput, ...], dict[str, int]]:
    plan = make_plan(tiny(), corpus, RecordingConfig(overflow=overflow, max_length=limit))
    return plan.inputs, plan.counts


def assert_aligned(recorded: RecordedInput, limit: int) -> None:
    """The input fits, its word axis is that of its text, and its tokens are those of its text."""
    tokens = recorded.tokens
    assert 0 < len(tokens) <= limit
    assert tokens.n_words == len(recorded.text.words)
    assert tokens.word_ids.max() < tokens.n_words
    for segment in recorded.text.segments:
        assert tuple(segment.text[a:b] for a, b in segment.offsets) == segment.words
    expected = tiny().tokenise([recorded.text])[0]
    assert expected.tokens == tokens.tokens
    np.testing.assert_array_equal(expected.word_ids, tokens.word_ids)
    assert tokens.special_kinds[0] == SpecialToken.CLS
    assert tokens.special_kinds[-1] == SpecialToken.SEP


def test_the_refusal_names_length_limit_and_option() -> None:
    message = r'Example 1 \("[^"]+ \.\.\."\) has \d+ tokens; tiny takes at most 16.*--overflow skip, truncate or window'
    with pytest.raises(Refusal, match=message):
        _plan(_long_corpus(30), "error", 16)


def test_the_encoders_limit_is_the_default() -> None:
    with pytest.raises(Refusal, match=f"at most {tiny().max_length}"):
        make_plan(tiny(), _long_corpus(tiny().max_length), RecordingConfig())


def test_skipped_inputs_are_counted() -> None:
    corpus = Corpus((*mixed(6, max_words=3), *_long_corpus(40)))
    inputs, counts = _plan(corpus, "skip", 40)
    assert [recorded.example_index for recorded in inputs] == list(range(6))
    assert counts["long inputs skipped"] == 1
    assert counts["inputs"] == 7
    with pytest.raises(Refusal, match="has no input to record"):
        _plan(_long_corpus(40), "skip", 16)


@pytest.mark.parametrize("n_segments", [1, 2])
def test_truncation_keeps_the_first_words_and_uses_the_available_tokens(n_segments: int) -> None:
    corpus = _long_corpus(40, n_segments=n_segments)
    (recorded,), counts = _plan(corpus, "truncate", 24)
    assert_aligned(recorded, 24)
    assert counts["long inputs truncated"] == 1
    assert "words truncated" not in counts
    assert len(recorded.tokens) > 24 - 9, "less than a word is left unused"
    for full, truncated in zip(corpus[0].segments, recorded.text.segments, strict=True):
        assert full.words[: len(truncated)] == truncated.words
        assert len(truncated) > 0
        assert truncated.governors is None, "a truncated tree is not a tree"


def test_the_shorter_segment_of_a_pair_is_not_truncated_if_possible() -> None:
    short, long = mixed(1, max_words=1)[0].segments[0], _long_corpus(60)[0].segments[0]
    for segments in ((short, long), (long, short)):
        (recorded,), _ = _plan(Corpus((Example(segments, "pair"),)), "truncate", 30)
        assert_aligned(recorded, 30)
        assert recorded.text.segments[segments.index(short)] == short
        assert len(recorded.tokens) > 30 - 9


def test_two_long_segments_both_keep_words() -> None:
    (recorded,), _ = _plan(_long_corpus(50, n_segments=2), "truncate", 12)
    assert all(len(segment) > 0 for segment in recorded.text.segments)
    assert_aligned(recorded, 12)


@pytest.mark.parametrize("n_segments", [1, 2])
def test_windows_cover_every_word_and_overlap(n_segments: int) -> None:
    segments = (*mixed(1, max_words=4)[0].segments, *_long_corpus(60)[0].segments)[-n_segments:]
    corpus = Corpus((Example(segments, "pair" if n_segments > 1 else "sentence"),))
    windows, counts = _plan(corpus, "window", 40)
    assert counts["long inputs split into windows"] == 1
    assert counts["windows"] == len(windows) > 2
    assert [window.window_index for window in windows] == list(range(len(windows)))
    for window in windows:
        assert_aligned(window, 40)
        assert window.example_index == 0
    _assert_covered(corpus[0].segments[-1], [window.text.segments[-1] for window in windows])
    if n_segments == 2:
        assert all(window.text.segments[0] == corpus[0].segments[0] for window in windows)


def _assert_covered(sentence: Sentence, windows: list[Sentence]) -> None:
    """The windows are runs of words, each starting within or right after the one before it, with no word missing."""
    reached = start = 0
    for window in windows:
        start = next(at for at in range(start, reached + 1) if sentence.words[at : at + len(window)] == window.words)
        reached = max(reached, start + len(window))
    assert reached == len(sentence)


@pytest.mark.parametrize("overflow", ["truncate", "window"])
@pytest.mark.parametrize("long_word", [0, 5, 19])
@pytest.mark.parametrize("n_segments", [1, 2])
def test_a_word_longer_than_the_encoder_is_truncated_and_counted(
    overflow: Overflow, long_word: int, n_segments: int
) -> None:
    inputs, counts = _plan(_long_corpus(20, long_word=long_word, n_segments=n_segments), overflow, 70)
    for recorded in inputs:
        assert_aligned(recorded, 70)
    if overflow == "window":
        assert counts["words truncated"] >= 1
        words = [word for recorded in inputs for word in recorded.text.words]
        assert any(word.startswith(LONG_WORD[:3]) for word in words), "the beginning of the long word is recorded"
        if n_segments == 2:
            assert all(recorded.text.segments[0] == inputs[0].text.segments[0] for recorded in inputs)


UNUSUAL_WORDS = ["the", "cat", "qzx", "é", "。", "\u200b", "☃", "a" * 40, "don't"]


@FEW_EXAMPLES
@given(
    words=st.lists(st.sampled_from(UNUSUAL_WORDS), min_size=1, max_size=60),
    second=st.lists(st.sampled_from(["and", "zzzz", "…"]), max_size=8),
    limit=st.integers(12, 40),
    overflow=st.sampled_from(["truncate", "window"]),
)
def test_any_words_align_after_shortening(words: list[str], second: list[str], limit: int, overflow: Overflow) -> None:
    segments = (sentence_from_words(words), sentence_from_words(second)) if second else (sentence_from_words(words),)
    corpus = Corpus((Example(segments, "pair" if second else "sentence"),))
    try:
        inputs, counts = _plan(corpus, overflow, limit)
    except Refusal as refusal:
        assert "leave no space" in str(refusal)
        return
    for recorded in inputs:
        assert 0 < len(recorded.tokens) <= limit
        assert recorded.tokens.n_words == len(recorded.text.words)
    if overflow == "window" and "words truncated" not in counts:
        segment_ids = tiny().tokenise(corpus[0].text_inputs)[0].segment_ids
        longest = int(np.argmax([int((segment_ids == index).sum()) for index in range(len(segments))]))
        _assert_covered(segments[longest], [recorded.text.segments[longest] for recorded in inputs])


def test_a_limit_without_space_for_a_word_is_refused() -> None:
    for overflow in ("truncate", "window"):
        with pytest.raises(Refusal, match="leave no space"):
            _plan(_long_corpus(20), overflow, 2)
    segments = (mixed(1, max_words=9, seed=3)[0].segments[0], _long_corpus(30)[0].segments[0])
    pair = Corpus((Example(segments, "pair"),))
    n_first = int((tiny().tokenise(pair[0].text_inputs)[0].segment_ids == 0).sum())
    with pytest.raises(Refusal, match="leave no space"):
        _plan(pair, "window", n_first + 3)
    assert _plan(pair, "window", n_first + 4 + 8)[0]


def test_a_slice_keeps_the_annotations_that_stay_valid() -> None:
    sentence = Sentence(
        words=("a", "b", "c", "d"),
        text="a b c d",
        offsets=((0, 1), (2, 3), (4, 5), (6, 7)),
        pos=("A", "B", "C", "D"),
        morphology=("_", "Number=Sing", "_", "_"),
        governors=(1, -1, 1, 2),
        entities=(Span(0, 1, "X"), Span(1, 3, "Y"), Span(2, 4, "Z")),
        marked_words={"target": (2,), "other": (0,)},
        label="good",
    )
    sliced = slice_sentence(sentence, 1, 3)
    assert (sliced.words, sliced.text, sliced.offsets) == (("b", "c"), "b c", ((0, 1), (2, 3)))
    assert sliced.pos == ("B", "C")
    assert sliced.morphology == ("Number=Sing", "_")
    assert sliced.governors is None
    assert sliced.entities == (Span(0, 2, "Y"),)
    assert sliced.marked_words == {"target": (1,), "other": ()}
    assert sliced.label == "good"


def test_windows_are_recorded_like_other_inputs() -> None:
    config = RecordingConfig(overflow="window", max_length=20)
    recording = record(tiny(), _long_corpus(60), ["attention"], config=config)
    for index, recorded in enumerate(recording.inputs):
        assert recording["attention"][index].shape[-1] == len(recorded.tokens)


def test_static_vectors_have_no_limit() -> None:
    corpus = corpus_from_sentences([sentence_from_words(["word"] * 5000)])
    assert len(record(load("random-vectors:4"), corpus, ["hidden"])) == 1


class ContextualTokeniser:
    """An encoder that gives the first word of a shortened text two more tokens than in the full text."""

    def __init__(self, full_text: Sentence) -> None:
        self.full_text = full_text

    def __getattr__(self, name: str) -> Any:
        return getattr(tiny(), name)

    def tokenise(self, inputs: Sequence[TextInput]) -> list[TokenisedInput]:
        return [self._lengthen(text, tokens) for text, tokens in zip(inputs, tiny().tokenise(inputs), strict=True)]

    def _lengthen(self, text: TextInput, tokens: TokenisedInput) -> TokenisedInput:
        if text.segments[0] == self.full_text:
            return tokens
        positions = [0, 1, 1, *range(1, len(tokens))]
        arrays: dict[str, Any] = {name: getattr(tokens, name)[positions] for name in TOKEN_ARRAYS}
        return replace(tokens, tokens=tuple(tokens.tokens[position] for position in positions), **arrays)


@pytest.mark.parametrize("overflow", ["truncate", "window"])
def test_a_shortened_text_that_is_tokenised_differently_still_fits(overflow: Overflow) -> None:
    corpus = _long_corpus(60)
    full_text = corpus[0].segments[0]
    encoder = cast(Encoder, ContextualTokeniser(full_text))
    for limit in range(20, 32):
        plan = make_plan(encoder, corpus, RecordingConfig(overflow=overflow, max_length=limit))
        assert all(len(recorded.tokens) <= limit for recorded in plan.inputs)
        assert "words truncated" not in plan.counts
        if overflow == "window":
            _assert_covered(full_text, [recorded.text.segments[0] for recorded in plan.inputs])


def _numbered_words(n_words: int, prefix: str = "a") -> Sentence:
    return sentence_from_words([f"{prefix}{number}" for number in range(n_words)])


def _example(kind: Any, *sizes: int, label: str = "0") -> Example:
    segments = (_numbered_words(n_words, "abcde"[index]) for index, n_words in enumerate(sizes))
    return Example(tuple(segments), kind, label)


@pytest.mark.parametrize(
    ("kind", "sizes", "cut"),
    [
        ("sentence", (60,), (0,)),
        ("pair", (60, 5), (0,)),
        ("pair", (5, 60), (1,)),
        ("pair", (60, 50), (0, 1)),
        ("question", (4, 60), (1,)),
        ("choice", (60, 3, 2, 5), (0,)),
        ("minimal_pair", (60, 5), (0,)),
        ("minimal_pair", (60, 55), (0, 1)),
    ],
)
def test_an_example_is_cut_to_the_limit_between_words(kind: str, sizes: tuple[int, ...], cut: tuple[int, ...]) -> None:
    before, limit = _example(kind, *sizes), 64
    after = cut_example(tiny(), before, limit)
    assert after is not None
    lengths = [len(tokens) for tokens in tiny().tokenise(after.text_inputs)]
    assert max(lengths) <= limit < max(len(tokens) for tokens in tiny().tokenise(before.text_inputs))
    assert max(lengths) > limit - max(len(tokens) for tokens in tiny().tokenise(_example("sentence", 1).text_inputs))
    for index, (old, new) in enumerate(zip(before.segments, after.segments, strict=True)):
        assert new.words == old.words[: len(new)] and (len(new) < len(old)) == (index in cut)


def test_the_end_of_a_text_or_of_a_passage_can_be_kept() -> None:
    text = _example("sentence", 60)
    kept = cut_example(tiny(), text, 40, keep_end=True)
    assert kept is not None and kept.segments[0].words == text.segments[0].words[-len(kept.segments[0]) :]
    choice = _example("choice", 60, 3, 2)
    passage = choice.segments[0].words
    shortened = cut_example(tiny(), choice, 64, n_protected=4)
    assert shortened is not None and shortened.segments[1:] == choice.segments[1:]
    words = shortened.segments[0].words
    assert words[-4:] == passage[-4:] and words[:-4] == passage[: len(words) - 4] and 4 < len(words) < 60
    assert cut_example(tiny(), choice, 64, n_protected=60) is None
    assert cut_example(tiny(), _example("choice", 3, 3, 60), 40) is None
    assert cut_example(tiny(), choice, 1000) is choice


def test_long_examples_of_a_task_are_skipped_truncated_or_refused() -> None:
    limit = tiny().max_length
    short, long = _example("pair", 4, 4), _example("pair", limit, 4)
    assert fit_examples(tiny(), [short, long], "auto") == ([short, long], {})
    assert fit_examples(tiny(), [short, long], "skip") == ([short], {"long examples skipped": 1})
    fitted, counts = fit_examples(tiny(), [short, long], "truncate")
    assert counts == {"long examples truncated": 1} and len(fitted[1].segments[0]) < limit
    for overflow in ("error", "window"):
        with pytest.raises(Refusal, match="--overflow skip or truncate"):
            fit_examples(tiny(), [short, long], overflow)
        assert fit_examples(tiny(), [short], overflow) == ([short], {})


@pytest.mark.parametrize(("answer", "is_kept"), [(3, True), (-3, False)])
def test_a_question_whose_answer_would_be_cut_off_is_skipped(answer: int, is_kept: bool) -> None:
    n_words = tiny().max_length
    start = answer % n_words
    question, passage = _example("question", 4, n_words).segments
    example = Example((question, replace(passage, answer_spans=(Span(start, start + 1),))), "question")
    fitted, counts = fit_examples(tiny(), [example], "truncate")
    assert len(fitted) == is_kept and counts == {f"long examples {'truncated' if is_kept else 'skipped'}": 1}
    assert fit_examples(tiny(), [example], "window") == ([example], {})


def test_many_windows_look_at_every_span_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planning a long annotated sentence is linear: a slice finds its spans without reading the others."""
    rng = random.Random(0)
    words = sentence_from_words([f"w{index}" for index in range(300)])
    spans = tuple(Span(start, start + rng.randint(1, 9), "X") for start in rng.choices(range(291), k=200))
    sentence = replace(words, entities=spans, span_labels={"label": spans}, marked_words={"target": (5, 40, 8)})
    slicer = SentenceSlicer(sentence)
    read: list[Span] = []

    def counted(span: Span, **changes: int) -> Span:
        read.append(span)
        return replace(span, **changes)

    monkeypatch.setattr("bertology.recording.overflow.replace", counted)
    slices = {(start, start + 30): slicer.slice(start, start + 30) for start in range(0, 271, 15)}
    assert len(read) < 6 * len(spans), "each span is in at most two windows, and so is each label"
    for (start, end), part in slices.items():
        expected = [(s.start - start, s.end - start) for s in spans if start <= s.start and s.end <= end]
        assert [(span.start, span.end) for span in part.entities or ()] == expected, "in their original order"
        assert [(span.start, span.end) for span in part.span_labels["label"]] == expected
        assert part.marked_words["target"] == tuple(i - start for i in (5, 40, 8) if start <= i < end)
        assert part.words == sentence.words[start:end] and part.text == " ".join(part.words)


def test_a_window_may_have_room_for_a_single_token() -> None:
    words = TINY_WORDS.split()[:3]
    corpus = corpus_from_sentences([sentence_from_words(words)])
    plan = make_plan(tiny(), corpus, RecordingConfig(overflow="window", max_length=3))
    assert [recorded.tokens.tokens for recorded in plan.inputs] == [("[CLS]", word, "[SEP]") for word in words]
    with pytest.raises(Refusal):
        make_plan(tiny(), corpus, RecordingConfig(overflow="window", max_length=2))
