"""Each of the six patterns is recognised only in the head it was planted in; noise gets no label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import planted
from bertology.analyses.attention.word_patterns.analysis import word_patterns
from bertology.analyses.attention.word_patterns.targets import LABELS, PATTERNS, pattern_masks, pattern_site
from bertology.analyses.word_relations import WordRelations
from bertology.corpus.corpus import Corpus
from bertology.encoder.tokens import SpecialToken
from bertology.estimates.hypothesis_tests import paired_test
from bertology.recording.manifest import open_recording
from bertology.recording.recording import Recording
from bertology.recording.sites import resolve_sites
from bertology.results.illustrations import Examples
from bertology.results.shapes import HeadGrid, Table
from shared_data import shared

TEXTS: tuple[str | tuple[str, str], ...] = (
    ("the cat saw the dog", "a dog saw the cat"),
    ("where is my red hat", "the hat is on my head"),
    ("one fish and one bird sing", "a bird and a fish dance"),
    ("we met a man and a boy", "the boy met the old man"),
    ("she reads what she likes", "he likes what he reads"),
    ("rain and more rain fell here", "here more snow and rain fell"),
    ("old men like old songs", "songs that old men like"),
)
MORE_TEXTS = (*TEXTS, *((f"{text[1]} today", f"{text[0]} again") for text in TEXTS))
"""Enough pairs, with enough words of two tokens, for a test to be significant after correction."""
RELATIONS = WordRelations()
Mask = Callable[[planted.RecordedInput], Any]


def split_words(corpus: Corpus) -> tuple[planted.RecordedInput, ...]:
    """Planted inputs in which every word of at least five letters has two tokens."""
    return tuple(_split(recorded_input) for recorded_input in planted.recorded_inputs(corpus))


def _split(recorded_input: planted.RecordedInput) -> planted.RecordedInput:
    tokens = recorded_input.tokens
    is_long = [len(token) >= 5 for token in tokens.tokens]
    n_tokens = np.where(np.array(is_long) & (tokens.special_kinds == SpecialToken.NONE), 2, 1)
    arrays = {
        name: np.repeat(getattr(tokens, name), n_tokens)
        for name in ("ids", "type_ids", "segment_ids", "word_ids", "special_kinds")
    }
    texts = tuple(np.repeat(np.array(tokens.tokens, object), n_tokens).tolist())
    return replace(recorded_input, tokens=replace(tokens, tokens=texts, **arrays))


def on_targets(pattern: str) -> planted.HeadAttention:
    """A head that attends only to the targets of a pattern, and to the token itself if there are none."""

    def head(recorded_input: planted.RecordedInput) -> planted.FloatArray:
        mask = pattern_masks(recorded_input, RELATIONS)[pattern].astype(float)
        without_target = mask.sum(1) == 0
        mask[without_target] = np.eye(len(mask))[without_target]
        return mask / mask.sum(1, keepdims=True)

    return head


def recording_of(heads: list[planted.HeadAttention], corpus: Corpus | None = None) -> Recording:
    """A recording of these heads in one layer, with split words, at the default site."""
    corpus = corpus or planted.make_corpus(*MORE_TEXTS)
    recorded_inputs = split_words(corpus)
    attention = [
        np.stack([head(recorded_input) for head in heads])[None].astype(np.float32)
        for recorded_input in recorded_inputs
    ]
    recording = planted.make_recording(corpus, [heads])
    return replace(recording, inputs=recorded_inputs, sites={"attention": attention}).with_sites([pattern_site()])


def run(heads: list[planted.HeadAttention], corpus: Corpus | None = None, **options: Any) -> Any:
    sites = resolve_sites(word_patterns.sites(word_patterns.resolve_options(options)))
    return word_patterns(recording_of(heads, corpus).with_sites(sites), None, **options)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_only_the_planted_pattern_has_a_high_score(pattern: str) -> None:
    grid = run([on_targets(pattern), planted.uniform_head])
    assert isinstance(grid, HeadGrid)
    assert list(grid.measures) == list(PATTERNS)
    assert grid.measures[pattern].value[0, 0] == pytest.approx(1)
    for other in set(PATTERNS) - {pattern}:
        assert grid.measures[other].value[0, 0] < 0.5
    for name, estimates in grid.measures.items():
        uniform = grid.baselines["uniform attention"][name].value[0, 1]
        assert estimates.value[0, 1] == pytest.approx(uniform, abs=1e-6)


def test_next_and_previous_are_not_swapped() -> None:
    recorded_input = planted.recorded_inputs(planted.make_corpus("a b c"))[0]
    masks = pattern_masks(recorded_input, RELATIONS)
    assert masks["next word"][1, 2] and not masks["previous word"][1, 2]
    assert masks["previous word"][3, 2] and not masks["next word"][3, 2]
    assert not masks["next word"][3].any()  # nothing follows the last word


def test_pattern_masks_of_a_small_example() -> None:
    recorded_input = _split(planted.recorded_inputs(planted.make_corpus(("The green tree .", "one tree .")))[0])
    # [CLS] The green green tree . [SEP] one tree . [SEP]
    masks = pattern_masks(recorded_input, RELATIONS)
    pairs = {name: {(int(i), int(j)) for i, j in np.argwhere(mask)} for name, mask in masks.items()}
    assert pairs["next word"] == {(1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (7, 8), (8, 9)}
    assert pairs["previous word"] == {(j, i) for i, j in pairs["next word"]}
    assert pairs["related words"] == set()
    assert pairs["related words (other sentence)"] == {(4, 8), (8, 4)}  # full stops are not related to any word
    assert pairs["predictive words"] == {(2, 3), (3, 2)}
    assert pairs["delimiters"] == {(i, j) for i in (1, 2, 3, 4, 5, 7, 8, 9) for j in (0, 6, 10)}


def test_lemmas_make_words_related() -> None:
    corpus = planted.make_corpus("cats saw a cat")
    without_lemmas = pattern_masks(planted.recorded_inputs(corpus)[0], RELATIONS)["related words"]
    assert not without_lemmas.any()
    example = corpus.examples[0]
    annotated = replace(
        corpus,
        examples=(replace(example, segments=(replace(example.segments[0], lemmas=("Cat", "see", "a", "cat")),)),),
    )
    result = pattern_masks(planted.recorded_inputs(annotated)[0], RELATIONS)["related words"]
    assert {(int(i), int(j)) for i, j in np.argwhere(result)} == {(1, 4), (4, 1)}


def test_capitalisation_does_not_distinguish_words() -> None:
    result = pattern_masks(planted.recorded_inputs(planted.make_corpus("The cat saw the dog"))[0], RELATIONS)
    assert {(int(i), int(j)) for i, j in np.argwhere(result["related words"])} == {(1, 4), (4, 1)}


def test_similar_vectors_make_words_related(tmp_path: Path) -> None:
    table = tmp_path / "vectors.txt"
    table.write_text("cat 1 0\ndog 0.9 0.1\nhat 0 1\n! 1 0\n", "utf-8")
    recorded_input = planted.recorded_inputs(planted.make_corpus("cat dog hat !"))[0]
    similar = WordRelations(f"glove:{table}", 0.8)
    result = pattern_masks(recorded_input, similar)["related words"]
    assert {(int(i), int(j)) for i, j in np.argwhere(result)} == {(1, 2), (2, 1)}
    assert pattern_site(similar).storage_key != pattern_site(RELATIONS).storage_key


def test_expressions_and_collocations_are_predictive(tmp_path: Path) -> None:
    corpus = planted.make_corpus("we saw New York")
    sentence = replace(
        corpus.examples[0].segments[0], governors=(1, -1, 1, 2), relations=("nsubj", "root", "obj", "flat:name")
    )
    annotated = replace(corpus, examples=(replace(corpus.examples[0], segments=(sentence,)),))
    result = pattern_masks(planted.recorded_inputs(annotated)[0], RELATIONS)["predictive words"]
    assert {(int(i), int(j)) for i, j in np.argwhere(result)} == {(3, 4), (4, 3)}
    collocations = tmp_path / "collocations.txt"
    collocations.write_text("in new york\nnear new york\nof new york\na new york\nto new york\nthe old town\n", "utf-8")
    with_collocations = WordRelations(collocation_corpus=str(collocations))
    result = pattern_masks(planted.recorded_inputs(corpus)[0], with_collocations)["predictive words"]
    assert {(int(i), int(j)) for i, j in np.argwhere(result)} == {(3, 4), (4, 3)}
    separated = planted.recorded_inputs(planted.make_corpus(("it is new", "york is old")))[0]
    assert not with_collocations.predictive_pairs(separated).any()  # words of different sentences are not neighbours


def test_attention_to_itself_counts_only_with_include_self() -> None:
    """With include_self every word has a target."""
    heads = [planted.offset_head(0)]
    assert run(heads).measures["related words"].value[0, 0] == pytest.approx(0)
    grid = run(heads, include_self=True)
    assert grid.measures["related words"].n[0, 0] == len(MORE_TEXTS)
    assert grid.measures["related words"].value[0, 0] > 0.9
    same_distance = grid.baselines["same-distance tokens"]["related words"].value[0, 0]
    assert same_distance == pytest.approx(grid.measures["related words"].value[0, 0])


def test_a_positional_head_is_no_better_than_same_distance_tokens() -> None:
    grid = run([planted.offset_head(-1), planted.offset_head(3), on_targets("related words")])
    scores = grid.measures["related words"].value[0]
    same_distance = grid.baselines["same-distance tokens"]["related words"].value[0]
    assert scores[2] - same_distance[2] > 0.5
    assert same_distance[1] >= scores[1] - 0.35


def test_scores_equal_a_loop_over_pairs() -> None:
    head = planted.random_head(5)
    recording = recording_of([head])
    compared: set[str] = set()
    for recorded_input, result in zip(recording.inputs, recording[pattern_site()], strict=True):
        attention = head(recorded_input)
        n = len(attention)
        non_special = recorded_input.tokens.special_kinds == SpecialToken.NONE
        segment_ids = recorded_input.tokens.segment_ids
        for name, mask in pattern_masks(recorded_input, RELATIONS).items():
            rows = [i for i in range(n) if mask[i].any()]
            if not rows:
                assert np.isnan(result[0, 0, LABELS.index(name)])
                continue
            expected: dict[str, Any] = {name: np.mean([attention[i, mask[i]].sum() for i in rows])}
            if name != "delimiters":
                to_non_special = np.mean([attention[i, non_special].sum() for i in rows])
                expected[f"{name}, attention to non-special tokens"] = to_non_special
            if name in {"related words", "related words (other sentence)", "predictive words"}:
                other_sentence = name == "related words (other sentence)"
                total = 0.0
                for i, j in np.argwhere(mask):
                    same_distance = [
                        attention[a, b]
                        for a in range(n)
                        for b in range(n)
                        if b - a == j - i
                        and segment_ids[a] >= 0 <= segment_ids[b]
                        and (segment_ids[a] != segment_ids[b]) == other_sentence
                        and not mask[a, b]
                    ]
                    total += np.mean(same_distance) if same_distance else attention[i, j]
                expected[f"{name}, same-distance tokens"] = total / len(rows)
            for label, score in expected.items():
                assert result[0, 0, LABELS.index(label)] == pytest.approx(score, abs=1e-6), label
            compared |= expected.keys()
    assert compared == set(LABELS)


def test_scores_are_renormalised_without_special_tokens() -> None:
    to_next = on_targets("next word")
    heads: list[planted.HeadAttention] = [
        lambda recorded_input: (
            0.4 * to_next(recorded_input) + 0.6 * planted.special_head(SpecialToken.CLS)(recorded_input)
        )
    ]
    assert run(heads).measures["next word"].value[0, 0] == pytest.approx(0.4)
    excluded = run(heads, special_tokens="exclude")
    assert excluded.measures["next word"].value[0, 0] == pytest.approx(1)
    assert "delimiters" not in excluded.measures


def test_only_the_planted_heads_are_labelled() -> None:
    heads = [on_targets(pattern) for pattern in PATTERNS] + [
        planted.uniform_head,
        *(planted.random_head(n) for n in range(8)),
    ]
    table = run(heads, show="labels")
    assert isinstance(table, Table)
    assert table.row_names == tuple(f"1-{index + 1} {pattern}" for index, pattern in enumerate(PATTERNS))
    np.testing.assert_allclose(table.measures["score"].value, 1, atol=1e-6)
    assert (table.measures["p (Holm)"].value < 0.05).all()
    assert all("best example (" in note and "counterexample (" in note for note in table.notes.values())


def test_the_p_value_is_that_of_the_hardest_baseline_corrected_for_all_tests() -> None:
    """The untrained head shows the pattern in every third sentence; noise heads only add tests."""

    def varying_head(*weights: float) -> planted.HeadAttention:
        def head(recorded_input: planted.RecordedInput) -> planted.FloatArray:
            weight = weights[len(recorded_input.tokens) % len(weights)]
            return weight * on_targets("next word")(recorded_input) + (1 - weight) * planted.random_head(7)(
                recorded_input
            )

        return head

    site = pattern_site()
    for n_noise in (1, 4):
        noise = [planted.random_head(number) for number in range(n_noise)]
        model, untrained = (
            recording_of([varying_head(0.8, 0.85, 0.9), *noise]),
            recording_of([varying_head(0.95, 0.05, 0.05, 0.05, 0.05), *noise]),
        )
        table = word_patterns(model, untrained, show="labels")
        assert isinstance(table, Table) and table.row_names == ("1-1 next word",)
        values = model.stack(site)[:, 0, 0, 0].astype(float), untrained.stack(site)[:, 0, 0, 0].astype(float)
        p = float(paired_test(values[0] - values[1]))
        assert p > float(
            paired_test(values[0] - 1 / np.array([len(recorded_input.tokens) for recorded_input in model.inputs]))
        )
        n_tests = (1 + n_noise) * len(PATTERNS)
        assert table.measures["p (Holm)"].value[0] == pytest.approx(n_tests * p, rel=1e-4)


def test_a_significant_but_tiny_difference_gives_no_label() -> None:
    """A positional head with a thousandth more attention to predictive words is not labelled."""
    to_next, to_predictive = planted.offset_head(1), on_targets("predictive words")

    def positional(recorded_input: planted.RecordedInput) -> planted.FloatArray:
        weight = 0.7 + 0.04 * (int(recorded_input.tokens.ids.sum()) % 7)  # sentences differ by more
        return weight * (0.999 * to_next(recorded_input) + 0.001 * to_predictive(recorded_input)) + (
            1 - weight
        ) * planted.uniform_head(recorded_input)

    grid = run([positional, on_targets("predictive words")])
    gain = grid.measures["predictive words"].value - grid.baselines["same-distance tokens"]["predictive words"].value
    assert 0 < gain[0, 0] < 0.01 < gain[0, 1]
    table = run([positional, on_targets("predictive words")], show="labels")
    assert "1-1 predictive words" not in table.row_names
    assert "1-2 predictive words" in table.row_names


def test_examples_are_the_best_and_the_worst_sentence() -> None:
    def varying_head(recorded_input: planted.RecordedInput) -> planted.FloatArray:
        weight = 0.9 if "cat" in recorded_input.text.words else 0.5 if "hat" in recorded_input.text.words else 0.7
        return weight * on_targets("next word")(recorded_input) + (1 - weight) * planted.uniform_head(recorded_input)

    result = run([varying_head], show="examples")
    assert isinstance(result, Examples)
    best, worst = result.examples
    assert best.caption == "1-1 next word: best example" and "cat" in best.words
    assert worst.caption == "1-1 next word: counterexample" and "hat" in worst.words
    assert best.score is not None and worst.score is not None and best.score > worst.score
    assert best.highlights["sources"] == (0, 1, 2, 3, 5, 6, 7, 8)


def test_examples_have_several_sources_if_possible() -> None:
    """Sentences of two words have a single source and are examples only if there are no others."""

    def perfect_when_short(recorded_input: planted.RecordedInput) -> planted.FloatArray:
        weight = 1.0 if len(recorded_input.text.words) == 2 else 0.8
        return weight * on_targets("next word")(recorded_input) + (1 - weight) * planted.uniform_head(recorded_input)

    result = run([perfect_when_short], planted.make_corpus(*MORE_TEXTS, "hello there"), show="examples")
    assert isinstance(result, Examples)
    assert all(len(example.words) > 2 for example in result.examples)
    texts = ("hello there", "good night", "well done", "come in", "so long", "go on", "see you", "not yet", "look out")
    only_short = planted.make_corpus(*texts)
    result = run([perfect_when_short], only_short, show="examples")
    assert isinstance(result, Examples)
    assert [len(example.words) for example in result.examples] == [2, 2]


def test_noise_gets_no_label() -> None:
    noise = [planted.random_head(number) for number in range(12)]
    table = run(noise, show="labels", min_score=0.01)
    assert table.row_names == ()
    assert run(noise, show="examples").examples == ()


def test_the_heads_that_vig_and_clark_name_show_their_pattern_in_bert_base() -> None:
    """On one pair of sentences: 3-1 attends to the next word, 8-4 to delimiters, 5-4 to the same word."""
    site = pattern_site()
    recording = open_recording(shared("data/bert-base-attention/pretrained-pair.npz")).with_sites([site])
    (scores,) = recording[site]
    by_name = {name: scores[..., index] for index, name in enumerate(LABELS)}
    assert by_name["next word"][2, 0] == pytest.approx(by_name["next word"].max(), abs=1e-2)
    assert by_name["delimiters"][7, 3] > 0.8
    best = np.unravel_index(int(by_name["related words (other sentence)"].argmax()), (12, 12))
    assert best == (4, 3)


def test_single_sentences_have_no_other_sentence() -> None:
    grid = run([planted.uniform_head], corpus=planted.make_corpus("a cat and a dog", "one two one"))
    assert "related words (other sentence)" not in grid.measures


@pytest.mark.parametrize(
    ("governors", "relations"),
    [
        ((1, -1, 1, 2, 2), ("nsubj", "root", "obj", "flat", "flat")),
        ((1, -1, 4, 4, 1), ("nsubj", "root", "compound", "compound", "obj")),
        ((1, -1, 3, 4, 1), ("nsubj", "root", "compound", "compound", "obj")),
    ],
)
def test_all_words_of_an_expression_are_predictive(governors: tuple[int, ...], relations: tuple[str, ...]) -> None:
    """Whether both other words depend on the first or on the last of three, or each on the next."""
    corpus = planted.make_corpus("we saw New York City")
    sentence = replace(corpus.examples[0].segments[0], governors=governors, relations=relations)
    annotated = replace(corpus, examples=(replace(corpus.examples[0], segments=(sentence,)),))
    result = pattern_masks(planted.recorded_inputs(annotated)[0], RELATIONS)["predictive words"]
    assert {(int(i), int(j)) for i, j in np.argwhere(result)} == set(permutations((3, 4, 5), 2))


def test_two_expressions_of_a_sentence_are_not_one() -> None:
    corpus = planted.make_corpus("New York saw Los Angeles")
    sentence = replace(
        corpus.examples[0].segments[0], governors=(2, 0, -1, 2, 3), relations=("nsubj", "flat", "root", "obj", "flat")
    )
    annotated = replace(corpus, examples=(replace(corpus.examples[0], segments=(sentence,)),))
    result = pattern_masks(planted.recorded_inputs(annotated)[0], RELATIONS)["predictive words"]
    assert {(int(i), int(j)) for i, j in np.argwhere(result)} == {(1, 2), (2, 1), (4, 5), (5, 4)}
