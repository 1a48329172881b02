"""Inputs too long for the encoder: refused, skipped, truncated or split into windows, and counted.

Texts are cut between words, so that the alignment stays valid; only a single word too long for the encoder is cut
within the word, which is counted too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, takewhile
from typing import Any, Literal

from bertology.corpus.example import Example, TextInput, concatenate_segments
from bertology.corpus.sentence import SPAN_ANNOTATIONS, Sentence, Span
from bertology.encoder.encoder import Encoder
from bertology.encoder.token_batch import RecordedInput
from bertology.encoder.tokens import TokenisedInput
from bertology.errors import Refusal

Overflow = Literal["error", "skip", "truncate", "window"]
ExampleOverflow = Literal["auto", "error", "skip", "truncate", "window"]
"""What is done with examples of a task that are too long; `auto`: what the task does when it is trained."""
LONG_SKIPPED, LONG_TRUNCATED = "long examples skipped", "long examples truncated"
LONG_IN_WINDOWS = "long examples split into windows"
UNUSABLE_SKIPPED = "examples skipped (too long, or a word without tokens)"

WORD_ANNOTATIONS = ("lemmas", "pos", "xpos", "morphology", "tags", "senses", "further_senses")
"""Annotations with one value per word that stay valid in a part of a sentence; the dependency tree does not."""


def count_unusable(task_name: str, n_skipped: int, n_changed: int) -> dict[str, int]:
    """The examples that a task skipped and those that it truncated or split, by what was done with them."""
    skipped = UNUSABLE_SKIPPED if task_name in {"token", "dependency"} else LONG_SKIPPED
    return {skipped: n_skipped, LONG_IN_WINDOWS if task_name == "qa" else LONG_TRUNCATED: n_changed}


def apply_overflow(
    encoder: Encoder, recorded_input: RecordedInput, limit: int, overflow: Overflow, counts: Counter[str]
) -> Iterator[RecordedInput]:
    """The inputs that replace one with more than `limit` tokens: none, one, or several windows."""
    match overflow:
        case "skip":
            counts["long inputs skipped"] += 1
        case "truncate":
            counts["long inputs truncated"] += 1
            yield _truncate(encoder, recorded_input, limit, counts)
        case "window":
            counts["long inputs split into windows"] += 1
            for window in _windows(encoder, recorded_input, limit, counts):
                counts["windows"] += 1
                yield window
        case "error":
            raise Refusal(
                f"{_describe(recorded_input)} has {len(recorded_input.tokens)} tokens; "
                f"{encoder.name} takes at most {limit}",
                f"at most {limit} tokens per input",
                "Use --overflow skip, truncate or window; the result counts how many inputs were affected",
            )


class SentenceSlicer:
    """Slices of one sentence: spans are found by their first word, so that many slices cost no more than the text."""

    def __init__(self, sentence: Sentence) -> None:
        self._sentence = sentence
        self._annotations = {
            name: None if getattr(sentence, name) is None else _SpanIndex(getattr(sentence, name))
            for name in SPAN_ANNOTATIONS
        }
        self._labels = {name: _SpanIndex(spans) for name, spans in sentence.span_labels.items()}
        self._marked = {
            name: _SpanIndex([Span(index, index + 1) for index in indices])
            for name, indices in sentence.marked_words.items()
        }

    def slice(self, start: int, end: int) -> Sentence:
        """Words `start` to `end` with their text and annotations; cut spans and the tree are dropped."""
        sentence = self._sentence
        begin, stop = sentence.offsets[start][0], sentence.offsets[end - 1][1]
        annotations: dict[str, Any] = {}
        for name in WORD_ANNOTATIONS:
            values = getattr(sentence, name)
            annotations[name] = None if values is None else values[start:end]
        for name, spans in self._annotations.items():
            annotations[name] = None if spans is None else spans.inside(start, end)
        return Sentence(
            words=sentence.words[start:end],
            text=sentence.text[begin:stop],
            offsets=tuple((a - begin, b - begin) for a, b in sentence.offsets[start:end]),
            id=sentence.id,
            document=sentence.document,
            label=sentence.label,
            marked_words={
                name: tuple(span.start for span in spans.inside(start, end)) for name, spans in self._marked.items()
            },
            word_labels={name: labels[start:end] for name, labels in sentence.word_labels.items()},
            span_labels={name: spans.inside(start, end) for name, spans in self._labels.items()},
            **annotations,
        )


class _SpanIndex:
    """Spans, found by their first word."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._spans = list(spans)
        self._order = sorted(range(len(self._spans)), key=lambda index: self._spans[index].start)
        self._starts = [self._spans[index].start for index in self._order]

    def inside(self, start: int, end: int) -> tuple[Span, ...]:
        """The spans within these words, in their original order, counted from `start`."""
        first, last = bisect_left(self._starts, start), bisect_left(self._starts, end)
        candidates = (self._spans[index] for index in sorted(self._order[first:last]))
        return tuple(
            replace(span, start=span.start - start, end=span.end - start) for span in candidates if span.end <= end
        )


def slice_sentence(sentence: Sentence, start: int, end: int) -> Sentence:
    """Words `start` to `end` of a sentence with their text and annotations; cut spans and the tree are dropped."""
    return SentenceSlicer(sentence).slice(start, end)


def fit_examples(
    encoder: Encoder, examples: Sequence[Example], overflow: ExampleOverflow, *, keep_end: bool = False
) -> tuple[list[Example], Counter[str]]:
    """The examples of a task that the encoder can take, cut if need be, and how many were skipped or truncated.

    With `auto`, and for questions with `window`, the task itself skips, truncates or splits. An example whose answer
    would be cut off is skipped.
    """
    counts: Counter[str] = Counter()
    if overflow == "auto":
        return list(examples), counts
    n_tokens = iter(encoder.tokenise([text for example in examples for text in example.text_inputs]))
    fitted: list[Example] = []
    for example in examples:
        length = max(len(next(n_tokens)) for _ in example.text_inputs)
        if length <= encoder.max_length or (overflow == "window" and example.kind == "question"):
            fitted.append(example)
            continue
        if overflow in ("error", "window"):
            raise _example_refusal(encoder, example, length, overflow)
        shortened = cut_example(encoder, example, encoder.max_length, keep_end=keep_end)
        if overflow == "skip" or shortened is None or _has_answers(example) > _has_answers(shortened):
            counts[LONG_SKIPPED] += 1
        else:
            fitted.append(shortened)
            counts[LONG_TRUNCATED] += 1
    return fitted, counts


def cut_example(
    encoder: Encoder, example: Example, limit: int, *, keep_end: bool = False, n_protected: int = 0
) -> Example | None:
    """The example without the words that exceed `limit` tokens in one of its inputs; None if too few words would stay.

    A text loses its last words, or with `keep_end` its first; a question or multiple choice the last words of its
    passage before the last `n_protected`; a pair the last words of its longer text.
    """
    while True:
        tokenised = encoder.tokenise(example.text_inputs)
        longest = max(range(len(tokenised)), key=lambda index: len(tokenised[index]))
        excess = len(tokenised[longest]) - limit
        if excess <= 0:
            return example
        parts = example.text_inputs[longest].segments
        sizes = [_tokens_per_word(tokenised[longest], parts, index) for index in range(len(parts))]
        totals = list(map(sum, sizes))
        cut = {"pair": totals.index(max(totals)), "question": 1}.get(example.kind, 0)
        if example.kind == "pair":
            excess = max(1, min(excess, totals[cut] - totals[1 - cut]))
        shortened = _without_words(parts[cut], sizes[cut], excess, keep_end=keep_end, n_protected=n_protected)
        if shortened is None:
            return None
        segments = list(example.segments)
        segments[longest if example.kind == "minimal_pair" else cut] = shortened
        example = replace(example, segments=tuple(segments))


def _has_answers(example: Example) -> bool:
    return any(segment.answer_spans for segment in example.segments)


def _example_refusal(encoder: Encoder, example: Example, length: int, overflow: ExampleOverflow) -> Refusal:
    words = " ".join(example.segments[0].words[:6])[:60]
    problem = f'The example "{words} ..." has {length} tokens; {encoder.name} takes at most {encoder.max_length}'
    if overflow == "error":
        return Refusal(
            problem,
            f"at most {encoder.max_length} tokens per input",
            "Use --overflow skip or truncate; the result counts how many examples were affected",
        )
    return Refusal(
        f"{problem}, and only questions with answers in a passage are evaluated in windows",
        "--overflow skip or truncate",
        "Use one of them, or omit --overflow",
    )


def _without_words(
    sentence: Sentence, sizes: Sequence[int], n_tokens: int, *, keep_end: bool, n_protected: int
) -> Sentence | None:
    """The sentence without its first or last words of at least `n_tokens` tokens; None if no word would stay."""
    n_removable = len(sizes) - n_protected
    removable = sizes[:n_removable] if keep_end else sizes[:n_removable][::-1]
    n_cut = 1 + sum(1 for _ in takewhile(lambda total: total < n_tokens, accumulate(removable)))
    if n_cut > n_removable or n_cut == len(sizes):
        return None
    if keep_end:
        return slice_sentence(sentence, n_cut, len(sizes))
    if not n_protected:
        return slice_sentence(sentence, 0, n_removable - n_cut)
    protected = slice_sentence(sentence, n_removable, len(sizes))
    kept = [slice_sentence(sentence, 0, n_removable - n_cut)] if n_cut < n_removable else []
    return replace(concatenate_segments([*kept, protected]), id=sentence.id, document=sentence.document)


def _truncate(
    encoder: Encoder, recorded_input: RecordedInput, limit: int, counts: Counter[str], segment_index: int | None = None
) -> RecordedInput:
    """Keep the first words of each segment, or shorten segment `segment_index` only.

    The longest segment loses words first; at least one word of each segment stays.
    """
    segments = recorded_input.text.segments
    sizes = [_tokens_per_word(recorded_input.tokens, segments, index) for index in range(len(segments))]
    totals = [sum(segment_sizes) for segment_sizes in sizes]
    available = limit - (len(recorded_input.tokens) - sum(totals))
    while True:
        quotas = _token_quotas(totals, available, segment_index)
        if any(quota < min(1, total) for quota, total in zip(quotas, totals, strict=True)):
            raise _length_refusal(encoder, recorded_input, limit)
        shortened = [_leading_words(part, sizes[index], quotas[index]) for index, part in enumerate(segments)]
        text = TextInput(tuple(sentence for sentence, _ in shortened))
        tokens = encoder.tokenise([text])[0]
        if len(tokens) <= limit:
            counts["words truncated"] += sum(n_cut for _, n_cut in shortened)
            return replace(recorded_input, text=text, tokens=tokens)
        # A shortened text may be tokenised differently: reduce the quota by the excess and try again.
        available -= len(tokens) - limit


def _token_quotas(totals: Sequence[int], available: int, segment_index: int | None) -> list[int]:
    """The number of tokens each segment may keep: available tokens are divided equally, short segments stay whole."""
    if segment_index is not None:
        rest = sum(totals) - totals[segment_index]
        return [available - rest if index == segment_index else total for index, total in enumerate(totals)]
    quotas = [0] * len(totals)
    remaining = available
    for rank, index in enumerate(sorted(range(len(totals)), key=lambda i: totals[i])):
        quotas[index] = min(totals[index], remaining // (len(totals) - rank))
        remaining -= quotas[index]
    return quotas


def _leading_words(sentence: Sentence, sizes: Sequence[int], max_tokens: int) -> tuple[Sentence, int]:
    """The words that fit into `max_tokens`, or the beginning of the first word, and the number of words cut (0, 1)."""
    n_words = _words_that_fit(sizes, 0, max_tokens)
    if n_words == len(sentence):
        return sentence, 0
    if n_words:
        return slice_sentence(sentence, 0, n_words), 0
    n_characters = max(1, len(sentence.words[0]) * max_tokens // sizes[0])
    first = slice_sentence(sentence, 0, 1)
    start, end = first.offsets[0]
    stop = min(end, start + n_characters)
    return replace(first, words=(first.words[0][:n_characters],), text=first.text[:stop], offsets=((start, stop),)), 1


def _words_that_fit(sizes: Sequence[int], start: int, max_tokens: int) -> int:
    """The number of words from `start` on that fit into `max_tokens`."""
    totals = accumulate(sizes[index] for index in range(start, len(sizes)))
    return sum(1 for _ in takewhile(lambda total: total <= max_tokens, totals))


def _windows(
    encoder: Encoder, recorded_input: RecordedInput, limit: int, counts: Counter[str]
) -> Iterator[RecordedInput]:
    """Windows over the words of the longest segment, each overlapping half of the last; other segments stay whole.

    Every word is in a window. A word too long for a window is cut.
    """
    segments = recorded_input.text.segments
    totals = [sum(_tokens_per_word(recorded_input.tokens, segments, index)) for index in range(len(segments))]
    longest = totals.index(max(totals))
    sizes = _tokens_per_word(recorded_input.tokens, segments, longest)
    available = limit - (len(recorded_input.tokens) - sum(sizes))
    if available < 1:
        raise _length_refusal(encoder, recorded_input, limit)
    slicer = SentenceSlicer(segments[longest])
    start = window_index = 0
    while start < len(sizes):
        end = start + max(1, _words_that_fit(sizes, start, available))
        window = _window(encoder, recorded_input, longest, slicer.slice(start, end), window_index)
        while len(window.tokens) > limit and end > start + 1:
            end -= 1
            window = _window(encoder, recorded_input, longest, slicer.slice(start, end), window_index)
        yield window if len(window.tokens) <= limit else _truncate(encoder, window, limit, counts, longest)
        window_index += 1
        if end == len(sizes):
            return
        start += max(1, (end - start) // 2)


def _window(
    encoder: Encoder, recorded_input: RecordedInput, segment_index: int, segment: Sentence, window_index: int
) -> RecordedInput:
    """The input with one of its segments replaced by a part of it."""
    segments = list(recorded_input.text.segments)
    segments[segment_index] = segment
    text = TextInput(tuple(segments))
    return replace(recorded_input, window_index=window_index, text=text, tokens=encoder.tokenise([text])[0])


def _tokens_per_word(tokens: TokenisedInput, segments: Sequence[Sentence], segment_index: int) -> list[int]:
    """The number of tokens of each word of a segment; tokens outside words count for the word before them."""
    first_word = sum(len(segment) for segment in segments[:segment_index])
    sizes = [0] * len(segments[segment_index])
    current = 0
    for word in tokens.word_ids[tokens.segment_ids == segment_index].tolist() if sizes else ():
        current = max(current, word - first_word)
        sizes[current] += 1
    return sizes


def _length_refusal(encoder: Encoder, recorded_input: RecordedInput, limit: int) -> Refusal:
    return Refusal(
        f"{_describe(recorded_input)} cannot be shortened to {limit} tokens: "
        "special tokens and the other segment leave no space",
        f"space for a word of each segment within {limit} tokens for {encoder.name}",
        "Raise --max-length, or use --overflow truncate or --overflow skip",
    )


def _describe(recorded_input: RecordedInput) -> str:
    words = " ".join(recorded_input.text.words[:6])[:60]
    return f'Example {recorded_input.example_index + 1} ("{words} ...")'
