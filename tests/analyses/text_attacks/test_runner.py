"""Attacks change what the model sees, and depend neither on the model nor on the other examples."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.evaluation.options import AttackOptions
from bertology.analyses.text_attacks.perturbations import AttackConfig
from bertology.analyses.text_attacks.registry import ATTACKS, parse_attacks
from bertology.analyses.text_attacks.runner import AttackResult, AttackRunner
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.sentence import Sentence, sentence_from_text, sentence_from_words
from bertology.encoder.encoder import TaskEncoder
from bertology.encoder.layer_variants import LayerVariant
from bertology.encoder.load import load
from bertology.encoder.task_heads import TaskHeadName, add_task_head
from planted_tasks import planted_corpus

ADD_TO_PASSAGE = "AddSent2Pas-Shuffle"


@cache
def with_task_head(task_head: TaskHeadName, *labels: str) -> TaskEncoder:
    base = load("tiny")
    assert isinstance(base, TaskEncoder)
    return add_task_head(base, task_head, labels, variant=LayerVariant(), seed=3)


def build_runner(encoder: TaskEncoder, corpus: Corpus, *, sample_size: int = 0) -> AttackRunner:
    return AttackRunner(encoder, corpus, AnalysisCache(), AttackOptions(sample_size=sample_size), AttackConfig())


def repeat_words(sentence: Sentence, n_words: int) -> Sentence:
    return sentence_from_words((sentence.words * n_words)[:n_words])


def with_long_segment(corpus: Corpus, segment_index: int, n_words: int) -> Corpus:
    examples: list[Example] = []
    for example in corpus:
        segments = list(example.segments)
        segments[segment_index] = repeat_words(segments[segment_index], n_words)
        examples.append(replace(example, segments=tuple(segments)))
    return replace(corpus, examples=tuple(examples))


def run_one(runner: AttackRunner, name: str) -> AttackResult:
    (result,) = runner.run(name)
    return result


@pytest.mark.parametrize("n_words", [505, 900])
def test_words_are_added_where_the_model_sees_them(n_words: int) -> None:
    encoder = with_task_head("choice")
    corpus = with_long_segment(planted_corpus("choice", 6), 0, n_words)
    runner = build_runner(encoder, corpus)
    (attack,) = parse_attacks(ADD_TO_PASSAGE, {"choice"})
    attacked = runner.attack_all(attack)
    for clean, after in zip(runner.examples, attacked, strict=True):
        passage, question = clean.segments[:2]
        distractor = clean.segments[2 + (clean.label == "0")]
        added = after.example.segments[0].words[-after.n_added :]
        assert after.is_truncated and Counter(added) == Counter(question.words + distractor.words)
        kept = len(after.example.segments[0]) - after.n_added
        assert after.example.segments[0].words[:kept] == passage.words[:kept]
        lengths = [len(tokens) for tokens in encoder.tokenise(after.example.text_inputs)]
        assert encoder.max_length - 3 < max(lengths) <= encoder.max_length
    result = run_one(runner, ADD_TO_PASSAGE)
    assert result.n_changed == 6 == result.n_truncated and result.n_not_evaluated == 0
    assert (result.attacked.edit_rate > 0).all() and (result.attacked.edit_rate < 0.05).all()
    np.testing.assert_allclose(result.random.edit_rate, result.attacked.edit_rate, atol=0.01)


def test_no_attack_changes_what_the_model_does_not_see() -> None:
    """The end of a classified text is read: its beginning is cut before the words are shuffled."""
    encoder = with_task_head("label", "bad", "good")
    corpus = with_long_segment(planted_corpus("sentence", 4), 0, 900)
    runner = build_runner(encoder, corpus)
    originals = {example.segments[0].words[-100:] for example in corpus}
    for example in runner.examples:
        assert len(example.segments[0]) <= encoder.max_length and example.segments[0].words[-100:] in originals
    (attack,) = parse_attacks("shuffled words", {"sentence"})
    for clean, after in zip(runner.examples, runner.attack_all(attack), strict=True):
        assert Counter(clean.segments[0].words) == Counter(after.example.segments[0].words)


def test_changed_inputs_are_those_whose_tokens_differ() -> None:
    encoder = with_task_head("label", "bad", "good")
    texts = ("the  happy   king was here", "the sad king was here")
    labels = ("good", "bad")
    examples = tuple(
        Example((sentence_from_text(text),), label=label) for text, label in zip(texts, labels, strict=True)
    )
    runner = build_runner(encoder, Corpus(examples))
    spaces = run_one(runner, "whitespace only (control)")
    assert spaces.n_changed == 0 and np.isnan(spaces.attacked.is_changed).all()
    assert run_one(runner, "shuffled words").n_changed == 2


def test_two_models_get_the_same_attacked_texts() -> None:
    corpus = planted_corpus("sentence", 12)
    numbered = tuple(replace(example, label=str(int(example.label == "good"))) for example in corpus)
    first = build_runner(with_task_head("label", "bad", "good"), corpus)
    second = build_runner(with_task_head("label", "negative", "positive"), replace(corpus, examples=numbered))
    for name in ("shuffled words", "typos"):
        versions: list[dict[str, tuple[str, str]]] = []
        for runner in (first, second):
            attacked = [attacked.example for attacked in runner.attack_all(ATTACKS[name])]
            edited = runner.random_edits(attacked)
            versions.append(
                {
                    clean.segments[0].text: (after.segments[0].text, random.segments[0].text)
                    for clean, after, random in zip(runner.examples, attacked, edited, strict=True)
                }
            )
        assert versions[0] == versions[1]


def test_an_attack_depends_neither_on_the_order_nor_on_the_other_examples() -> None:
    encoder, corpus = with_task_head("choice"), planted_corpus("choice", 12)
    runners = [
        build_runner(encoder, corpus),
        build_runner(encoder, replace(corpus, examples=corpus.examples[::-1])),
        build_runner(encoder, corpus, sample_size=5),
    ]
    for name in ("shuffled words", ADD_TO_PASSAGE):
        texts: list[dict[str, tuple[str, ...]]] = []
        for runner in runners:
            attacked = [attacked.example for attacked in runner.attack_all(ATTACKS[name])]
            versions = zip(runner.examples, attacked, runner.random_edits(attacked), strict=True)
            texts.append(
                {
                    " | ".join(segment.text for segment in clean.segments): tuple(
                        segment.text for version in (after, random) for segment in version.segments
                    )
                    for clean, after, random in versions
                }
            )
        assert texts[0] == texts[1] and len(texts[2]) == 5
        assert all(texts[0][text] == versions for text, versions in texts[2].items())
