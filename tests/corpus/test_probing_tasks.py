"""Probing tasks: balanced classes, no leakage between splits, and results that do not depend on the order."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

import pytest

from bertology.corpus.corpus import Corpus, corpus_from_sentences
from bertology.corpus.hashing import seeded_hash, shuffle_by_hash
from bertology.corpus.probing_tasks import (
    SPLITS,
    build_task_corpus,
    parse_task_address,
    probing_tasks,
)
from bertology.corpus.read import as_corpus, list_corpora, load_corpus
from bertology.corpus.sentence import Sentence, sentence_from_words
from bertology.errors import Refusal

NAMES = (
    "bigram_shift", "coordination_inversion", "length", "object_number", "odd_man_out", "subject_number", "tense",
    "top_constituent", "tree_depth", "word_content",
)  # fmt: skip


@pytest.fixture(scope="module")
def treebank() -> Corpus:
    """Four copies of the built-in treebank with different spellings: enough sentences for every task."""
    english = load_corpus("english")
    copies = [english.map_sentences(lambda s, suffix=suffix: respell(s, suffix)) for suffix in ("", "x", "y", "z")]
    return Corpus(tuple(example for copy in copies for example in copy), name="treebank")


def respell(sentence: Sentence, suffix: str) -> Sentence:
    words = tuple(word + suffix if word.isalpha() and len(word) > 5 else word for word in sentence.words)
    lemmas = tuple(lemma + suffix for lemma in sentence.lemmas or ())
    plain = sentence_from_words(words)
    return replace(sentence, words=words, text=plain.text, offsets=plain.offsets, lemmas=lemmas)


def test_the_ten_tasks_are_registered_and_listed() -> None:
    assert tuple(probing_tasks()) == NAMES
    assert {f"tasks:{name}:CORPUS" for name in NAMES} <= {row["name"] for row in list_corpora()}


@pytest.mark.parametrize("name", NAMES)
def test_a_task_is_balanced_and_without_leakage(name: str, treebank: Corpus) -> None:
    corpus = build_task_corpus(probing_tasks()[name], treebank)
    by_split: dict[str, Counter[str]] = defaultdict(Counter)
    for example in corpus:
        by_split[example.source][str(example.label)] += 1
        assert example.segments[0].label == example.label
    assert set(by_split) == set(SPLITS)
    for split, counts in by_split.items():
        assert len(counts) >= 2 and len(set(counts.values())) == 1, split
        assert set(counts) == set(by_split["train"]), split
    n_classes = len(by_split["train"])
    assert len({e.label for e in corpus[:n_classes]}) == n_classes, "the first sentences are balanced too"
    texts = Counter(" ".join(sorted(example.segments[0].words)).lower() for example in corpus)
    assert max(texts.values()) <= 1 + (name == "odd_man_out"), "a source sentence is used once"
    groups = defaultdict(set)
    for example in corpus:
        groups[example.segments[0].document].add(example.source)
    groups.pop("", None)
    assert all(len(sources) == 1 for sources in groups.values())
    assert bool(groups) == (name in {"tense", "subject_number", "object_number"})


@pytest.mark.parametrize("name", NAMES)
def test_a_task_depends_on_the_seed_but_not_on_the_order_of_sentences(name: str, treebank: Corpus) -> None:
    reversed_corpus = replace(treebank, examples=treebank.examples[::-1])
    task = probing_tasks()[name]
    examples = build_task_corpus(task, treebank).examples
    assert build_task_corpus(task, reversed_corpus).examples == examples
    assert build_task_corpus(task, treebank, 1).examples != examples


def test_surface_labels_and_depth_follow_from_the_sentences(treebank: Corpus) -> None:
    for example in build_task_corpus(probing_tasks()["length"], treebank):
        low, high = map(int, str(example.label).split("-"))
        assert low <= len(example.segments[0]) <= high
    targets = {example.label for example in build_task_corpus(probing_tasks()["word_content"], treebank)}
    for example in build_task_corpus(probing_tasks()["word_content"], treebank):
        assert [word.lower() for word in example.segments[0].words if word.lower() in targets] == [example.label]
    lengths: dict[str | None, list[int]] = defaultdict(list)
    for example in build_task_corpus(probing_tasks()["tree_depth"], treebank):
        lengths[example.label].append(len(example.segments[0]))
    assert len({tuple(sorted(values)) for values in lengths.values()}) == 1, "depth and length are independent"


def test_only_corrupted_sentences_differ_from_the_corpus() -> None:
    treebank = load_corpus("english")
    sources = {example.segments[0].words for example in treebank}
    for name in ("bigram_shift", "odd_man_out", "coordination_inversion"):
        for example in build_task_corpus(probing_tasks()[name], treebank):
            assert (example.segments[0].words in sources) == (example.label == "O"), name
    swapped = [
        example.segments[0].words
        for example in build_task_corpus(probing_tasks()["bigram_shift"], treebank)
        if example.label == "I"
    ]
    by_words = {frozenset(Counter(words).items()): words for words in sources}
    for words in swapped:
        source = by_words[frozenset(Counter(words).items())]
        indices = [index for index, (a, b) in enumerate(zip(words, source, strict=True)) if a != b]
        assert len(indices) == 2 and indices[1] == indices[0] + 1 and indices[0] > 0


def test_one_word_is_replaced_in_odd_man_out() -> None:
    treebank = load_corpus("english")
    corpus = build_task_corpus(probing_tasks()["odd_man_out"], treebank)
    sources = {example.segments[0].words for example in treebank}
    for example in corpus:
        words = example.segments[0].words
        if example.label == "C":
            assert any(len(s) == len(words) and n_differences(s, words) == 1 for s in sources), words


def n_differences(first: tuple[str, ...], second: tuple[str, ...]) -> int:
    return sum(a != b for a, b in zip(first, second, strict=True))


def test_the_order_by_hash_is_fixed() -> None:
    """Another hash would change the order of examples in random splits, and with it published numbers."""
    assert seeded_hash("dog", 3).hex()[:12] == "8e450b290919"
    assert shuffle_by_hash(["a", "b", "c", "a", "d"], 0) == ["d", "a", "b", "c"]


def test_a_task_is_loaded_by_its_address() -> None:
    task, seed, source = parse_task_address("tasks:tense@7:generated:agreement@1:20")
    assert (task.name, seed, source) == ("tense", 7, "generated:agreement@1:20")
    assert len(load_corpus("tasks:bigram_shift:english", limit=10)) == 10
    assert load_corpus("tasks:bigram_shift:english").name == "tasks:bigram_shift@0:english.conllu"
    with pytest.raises(Refusal, match="bigram_shift"):
        load_corpus("tasks:bigram_shuft:english")
    with pytest.raises(Refusal, match="is not the name of a probing task"):
        load_corpus("tasks:tense")


def test_missing_annotations_and_small_corpora_are_refused() -> None:
    plain = as_corpus([f"Sentence number {n} of a plain text is here now ." for n in range(20)])
    assert build_task_corpus(probing_tasks()["bigram_shift"], plain)
    with pytest.raises(Refusal, match="governors"):
        build_task_corpus(probing_tasks()["tense"], plain)
    with pytest.raises(Refusal, match="too few examples"):
        build_task_corpus(probing_tasks()["length"], corpus_from_sentences([sentence_from_words(["a"] * 7)]))
