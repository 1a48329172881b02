"""Sentence tasks: balanced, without leakage, the same whatever the order; each task says what it should."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

import pytest

from bertology.corpus.builtin import corpus_named, describe
from bertology.corpus.corpus import Corpus, of_sentences, read_text
from bertology.corpus.sentence import ROOT, Sentence, sentence
from bertology.corpus.sentence_tasks import SPLITS, build, parse, tasks
from bertology.corpus.tasks.changes import _clauses, _inverted  # pyright: ignore[reportPrivateUsage]
from bertology.corpus.tasks.syntax import deepest, top_constituents
from bertology.errors import Refusal

NAMES = (
    "bigram_shift", "coordination_inversion", "length", "object_number", "odd_man_out", "subject_number", "tense",
    "top_constituent", "tree_depth", "word_content",
)  # fmt: skip


@pytest.fixture(scope="module")
def treebank() -> Corpus:
    """The embedded corpus three times over, the words of each copy spelt differently: enough for every task."""
    english = corpus_named("english")
    copies = [english.map(lambda own, mark=mark: _spelt(own, mark)) for mark in ("", "x", "y", "z")]
    return Corpus(tuple(item for copy in copies for item in copy), name="treebank")


def _spelt(own: Sentence, mark: str) -> Sentence:
    words = tuple(word + mark if word.isalpha() and len(word) > 5 else word for word in own.words)
    lemmas = tuple(lemma + mark for lemma in own.lemmas or ())
    made = sentence(words)
    return replace(own, words=words, text=made.text, offsets=made.offsets, lemmas=lemmas)


def test_there_are_the_ten() -> None:
    assert tuple(tasks()) == NAMES
    assert {f"tasks:{name}:CORPUS" for name in NAMES} <= {row["name"] for row in describe()}


@pytest.mark.parametrize("name", NAMES)
def test_balanced_and_without_leakage(name: str, treebank: Corpus) -> None:
    made = build(tasks()[name], treebank)
    by_split: dict[str, Counter[str]] = defaultdict(Counter)
    for item in made:
        by_split[item.source][str(item.label)] += 1
        assert item.parts[0].label == item.label
    assert set(by_split) == set(SPLITS)
    for split, counts in by_split.items():
        assert len(counts) >= 2 and len(set(counts.values())) == 1, split
        assert set(counts) == set(by_split["train"]), split
    classes = len(by_split["train"])
    assert len({item.label for item in made[:classes]}) == classes, "the first sentences are balanced too"
    texts = Counter(" ".join(sorted(item.parts[0].words)).lower() for item in made)
    assert max(texts.values()) <= 1 + (name == "odd_man_out"), "a source sentence is used once"
    groups = defaultdict(set)
    for item in made:
        groups[item.parts[0].document].add(item.source)
    groups.pop("", None)
    assert all(len(sources) == 1 for sources in groups.values())
    assert bool(groups) == (name in {"tense", "subject_number", "object_number"})


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_the_corpus_changes_nothing_and_the_seed_does(name: str, treebank: Corpus) -> None:
    backwards = replace(treebank, items=treebank.items[::-1])
    assert build(tasks()[name], treebank).items == build(tasks()[name], backwards).items
    assert build(tasks()[name], treebank, 1).items != build(tasks()[name], treebank).items


def test_labels_say_what_the_sentence_shows(treebank: Corpus) -> None:
    for item in build(tasks()["length"], treebank):
        low, high = map(int, str(item.label).split("-"))
        assert low <= len(item.parts[0]) <= high
    targets = {item.label for item in build(tasks()["word_content"], treebank)}
    for item in build(tasks()["word_content"], treebank):
        assert [word.lower() for word in item.parts[0].words if word.lower() in targets] == [item.label]
    lengths: dict[str | None, list[int]] = defaultdict(list)
    for item in build(tasks()["tree_depth"], treebank):
        lengths[item.label].append(len(item.parts[0]))
    assert len({tuple(sorted(own)) for own in lengths.values()}) == 1, "depth does not go with length"


def test_changed_sentences_differ_from_the_source_and_others_do_not() -> None:
    treebank = corpus_named("english")
    sources = {item.parts[0].words for item in treebank}
    for name, intact in (("bigram_shift", "O"), ("odd_man_out", "O"), ("coordination_inversion", "O")):
        for item in build(tasks()[name], treebank):
            assert (item.parts[0].words in sources) == (item.label == intact), name
    swapped = [item.parts[0].words for item in build(tasks()["bigram_shift"], treebank) if item.label == "I"]
    near = {frozenset(Counter(words).items()): words for words in sources}
    for words in swapped:
        source = near[frozenset(Counter(words).items())]
        places = [place for place, (a, b) in enumerate(zip(words, source, strict=True)) if a != b]
        assert len(places) == 2 and places[1] == places[0] + 1 and places[0] > 0


def test_one_word_is_replaced() -> None:
    treebank = corpus_named("english")
    made = build(tasks()["odd_man_out"], treebank)
    sources = {item.parts[0].words for item in treebank}
    for item in made:
        if item.label == "C":
            close = [s for s in sources if len(s) == len(item.parts[0]) and _apart(s, item.parts[0].words) == 1]
            assert close, item.parts[0].text


def _apart(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    return sum(a != b for a, b in zip(one, other, strict=True))


def tree(text: str, heads: list[int], relations: str, pos: str = "") -> Sentence:
    plain = sentence(text.split())
    tags = tuple(pos.split()) or None
    return replace(
        plain, heads=tuple(h - 1 if h else ROOT for h in heads), relations=tuple(relations.split()), pos=tags
    )


def test_clauses_are_exchanged() -> None:
    own = tree(
        "The dog slept , but we left .",
        [2, 3, 0, 7, 7, 7, 3, 3],
        "det nsubj root punct cc nsubj conj punct",
        "DET NOUN VERB PUNCT CCONJ PRON VERB PUNCT",
    )
    parts = _clauses(own)
    assert parts is not None
    assert " ".join(_inverted(own, *parts)) == "We left , but the dog slept ."
    shared = tree("The dog slept and left .", [2, 3, 0, 5, 3, 3], "det nsubj root cc conj punct")
    assert _clauses(shared) is None  # the second verb has no subject


def test_constituents_and_depth() -> None:
    plain = tree("The dog slept .", [2, 3, 0, 3], "det nsubj root punct", "DET NOUN VERB PUNCT")
    assert top_constituents(plain) == ["NP", "VP", "."]
    question = tree("Is she here ?", [3, 3, 0, 3], "cop nsubj root punct", "AUX PRON ADV PUNCT")
    assert top_constituents(question) == ["AUX", "NP", "VP", "?"]
    copula = tree("She is a dog", [4, 4, 4, 0], "nsubj cop det root", "PRON AUX DET NOUN")
    assert top_constituents(copula) == ["NP", "VP"]
    fragment = tree("A big dog", [3, 3, 0], "det amod root", "DET ADJ NOUN")
    assert top_constituents(fragment) == ["NP"]
    assert deepest([1, 2, ROOT, 2]) == 2
    assert deepest([ROOT]) == 0


def test_addresses() -> None:
    named, seed, source = parse("tasks:tense@7:generated:agreement@1:20")
    assert (named.name, seed, source) == ("tense", 7, "generated:agreement@1:20")
    assert len(corpus_named("tasks:bigram_shift:english", limit=10)) == 10
    assert corpus_named("tasks:bigram_shift:english").name == "tasks:bigram_shift@0:english.conllu"
    with pytest.raises(Refusal, match="bigram_shift"):
        corpus_named("tasks:bigram_shuft:english")
    with pytest.raises(Refusal, match="does not name a sentence task"):
        corpus_named("tasks:tense")


def test_what_is_missing_is_said() -> None:
    plain = read_text(*(f"Sentence number {n} of a plain text is here now ." for n in range(20)))
    assert build(tasks()["bigram_shift"], plain)
    with pytest.raises(Refusal, match="heads"):
        build(tasks()["tense"], plain)
    with pytest.raises(Refusal, match="too few examples"):
        build(tasks()["length"], of_sentences([sentence(["a"] * 7)]))
