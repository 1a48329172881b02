"""Planted recordings: attention and hidden states constructed by a test, so that the right answer is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from bertology.arrays import Array, FloatArray
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example, TextInput
from bertology.corpus.sentence import SemanticFrame, Sentence, Span, sentence_from_text
from bertology.encoder.token_batch import RecordedInput
from bertology.encoder.tokens import SpecialToken, TokenisedInput
from bertology.recording.recording import EncoderSummary, Recording

HeadAttention = Callable[[RecordedInput], FloatArray]
"""A planted head: the attention pattern of an input."""


def make_corpus(*texts: str | tuple[str, str]) -> Corpus:
    """A corpus of sentences and pairs without annotations."""
    examples: list[Example] = []
    for text in texts:
        if isinstance(text, str):
            examples.append(Example((sentence_from_text(text),)))
        else:
            examples.append(Example((sentence_from_text(text[0]), sentence_from_text(text[1])), "pair"))
    return Corpus(tuple(examples), name="planted")


ROLES = {"nsubj": "ARG0", "obj": "ARG1", "obl": "ARGM-LOC", "advmod": "ARGM-ADV"}


def with_roles(sentence: Sentence) -> Sentence:
    """The sentence with a semantic frame for each verb, whose roles follow the dependency tree."""
    relations, governors = sentence.relations or (), sentence.governors or ()
    frames: list[SemanticFrame] = []
    for verb, tag in enumerate(sentence.pos or ()):
        arguments = [
            Span(word, word + 1, ROLES[relations[word]])
            for word, governor in enumerate(governors)
            if governor == verb and relations[word] in ROLES
        ]
        if tag == "VERB" and arguments:
            frames.append(SemanticFrame(verb, "", tuple(arguments)))
    return replace(sentence, frames=tuple(frames))


def question_corpus(corpus: Corpus) -> Corpus:
    """Every sentence as a passage whose middle word is the answer, with the sentence before it as the question."""
    examples: list[Example] = []
    for question, passage in pairwise(list(corpus.sentences)):
        middle = len(passage) // 2
        examples.append(Example((question, replace(passage, answer_spans=(Span(middle, middle + 1),))), "question"))
    return replace(corpus, examples=tuple(examples))


def recorded_inputs(corpus: Corpus) -> tuple[RecordedInput, ...]:
    """[CLS] words [SEP] (words [SEP]): one token per word, ids by alphabetical order of the words."""
    words = sorted({word for sentence in corpus.sentences for word in sentence.words})
    vocabulary = {word: index for index, word in enumerate(words)}
    return tuple(
        RecordedInput(example_index, input_index, 0, text, tokenise(text, vocabulary))
        for example_index, example in enumerate(corpus)
        for input_index, text in enumerate(example.text_inputs)
    )


def tokenise(text: TextInput, vocabulary: dict[str, int]) -> TokenisedInput:
    """[CLS] words [SEP], one token per word, with ids of the vocabulary."""
    tokens, segment_ids, word_ids, special_kinds, ids = ["[CLS]"], [-1], [-1], [int(SpecialToken.CLS)], [1]
    n_words = 0
    for index, sentence in enumerate(text.segments):
        for word in sentence.words:
            tokens.append(word)
            segment_ids.append(index)
            word_ids.append(n_words)
            special_kinds.append(int(SpecialToken.NONE))
            ids.append(10 + vocabulary[word])
            n_words += 1
        tokens.append("[SEP]")
        segment_ids.append(-1)
        word_ids.append(-1)
        special_kinds.append(int(SpecialToken.SEP))
        ids.append(2)
    return TokenisedInput(
        ids=np.array(ids, np.int32),
        tokens=tuple(tokens),
        type_ids=np.maximum(np.array(segment_ids, np.int32), 0),
        segment_ids=np.array(segment_ids, np.int32),
        word_ids=np.array(word_ids, np.int32),
        special_kinds=np.array(special_kinds, np.int32),
        n_words=n_words,
    )


def make_recording(
    corpus: Corpus,
    layers: Sequence[Sequence[HeadAttention]],
    hidden: Callable[[RecordedInput], FloatArray] | None = None,
) -> Recording:
    """A recording in which head h of layer l has the attention `layers[l][h](recorded_input)`."""
    inputs = recorded_inputs(corpus)
    attention: list[Array] = [
        np.stack([np.stack([head(recorded) for head in layer]) for layer in layers]).astype(np.float32)
        for recorded in inputs
    ]
    sites: dict[str, Sequence[Array]] = {"attention": attention}
    if hidden is not None:
        sites["hidden"] = [hidden(recorded).astype(np.float32) for recorded in inputs]
    encoder = EncoderSummary("planted", "0" * 32, len(layers), len(layers[0]), 8)
    return Recording(encoder, corpus, inputs, sites)


def uniform_head(recorded: RecordedInput) -> FloatArray:
    """A head that attends to all tokens equally."""
    n = len(recorded.tokens)
    return np.full((n, n), 1 / n)


def offset_head(offset: int) -> HeadAttention:
    """A head that attends `offset` tokens away, and to itself if there is no such token."""

    def head(recorded: RecordedInput) -> FloatArray:
        n = len(recorded.tokens)
        targets = np.arange(n) + offset
        targets = np.where((targets < 0) | (targets >= n), np.arange(n), targets)
        return np.eye(n)[targets]

    return head


def special_head(kind: SpecialToken) -> HeadAttention:
    """A head that attends equally to the special tokens of one kind."""

    def head(recorded: RecordedInput) -> FloatArray:
        is_target = (recorded.tokens.special_kinds == kind).astype(np.float64)
        return np.tile(is_target / is_target.sum(), (len(is_target), 1))

    return head


def random_head(seed: int) -> HeadAttention:
    """A head whose rows are random distributions."""

    def head(recorded: RecordedInput) -> FloatArray:
        n = len(recorded.tokens)
        return np.random.default_rng([seed, *recorded.tokens.ids.tolist()]).dirichlet(np.ones(n), size=n)

    return head


def merge_words(recorded_input: RecordedInput, n_tokens: int = 2) -> RecordedInput:
    """The same tokens, with every `n_tokens` neighbouring words as the tokens of one word."""
    words = recorded_input.tokens.word_ids
    merged = np.where(words < 0, -1, words // n_tokens).astype(np.int32)
    return replace(recorded_input, tokens=replace(recorded_input.tokens, word_ids=merged))
