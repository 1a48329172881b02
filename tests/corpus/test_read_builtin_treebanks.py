"""The built-in treebanks: valid trees, all annotations, both senses of each ambiguous word."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

import pytest

from bertology.corpus.corpus import Corpus
from bertology.corpus.read import BUILTIN_CORPORA, PAIR_CORPORA, load_corpus
from bertology.corpus.sentence import ROOT, Sentence

UPOS = frozenset(
    ("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM")
    + ("PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X")
)
RELATIONS = frozenset(
    ("acl", "advcl", "advmod", "amod", "appos", "aux", "case", "cc", "ccomp", "clf", "compound", "conj", "cop", "csubj")
    + ("dep", "det", "discourse", "dislocated", "expl", "fixed", "flat", "goeswith", "iobj", "list", "mark", "nmod")
    + ("nsubj", "nummod", "obj", "obl", "orphan", "parataxis", "punct", "reparandum", "root", "vocative", "xcomp")
)
LEAVES = {"punct"}
FUNCTION = {"case", "det", "aux", "cop", "mark", "cc"}
BELOW_FUNCTION = {"fixed", "goeswith", "conj", "cc", "punct", "advmod", "obl", "nmod", "case", "det", "compound"}


@pytest.fixture(scope="module", params=sorted(BUILTIN_CORPORA.keys() - PAIR_CORPORA))
def corpus(request: pytest.FixtureRequest) -> Corpus:
    return load_corpus(request.param)


@pytest.fixture(scope="module")
def english() -> Corpus:
    return load_corpus("english")


def sentences(corpus: Corpus) -> list[Sentence]:
    return list(corpus.sentences)


def test_the_corpora_have_the_documented_sizes() -> None:
    assert len(load_corpus("english")) >= 300
    assert len(load_corpus("chinese")) >= 60


def test_nothing_is_skipped_and_every_annotation_is_present(corpus: Corpus) -> None:
    assert not corpus.skipped
    required = {"pos", "governors", "relations", "lemmas", "entities", "mentions"}
    for name in required | ({"senses"} if corpus.name.startswith("english") else set()):
        assert corpus.annotations[name] == len(corpus), name


def test_offsets_match_the_words(corpus: Corpus) -> None:
    for sentence in sentences(corpus):
        assert sentence.text.strip() == sentence.text
        for word, (start, end) in zip(sentence.words, sentence.offsets, strict=True):
            assert sentence.text[start:end] == word, sentence.id


def test_trees_are_trees(corpus: Corpus) -> None:
    for sentence in sentences(corpus):
        assert sentence.governors is not None and sentence.relations is not None and sentence.pos is not None
        assert [r == "root" for r in sentence.relations] == [g == ROOT for g in sentence.governors], sentence.id
        assert sentence.governors.count(ROOT) == 1, sentence.id
        for word in range(len(sentence)):
            path: set[int] = set()
            while word != ROOT:
                assert word not in path, sentence.id
                path.add(word)
                word = sentence.governors[word]
        assert set(sentence.pos) <= UPOS, sentence.id
        assert {relation.split(":")[0] for relation in sentence.relations} <= RELATIONS, sentence.id


def test_function_words_and_punctuation_govern_no_phrases(corpus: Corpus) -> None:
    for sentence in sentences(corpus):
        assert sentence.governors is not None and sentence.relations is not None
        for governor, relation in zip(sentence.governors, sentence.relations, strict=True):
            if governor == ROOT:
                continue
            governor_relation = sentence.relations[governor].split(":")[0]
            assert governor_relation not in LEAVES, (sentence.id, relation)
            if governor_relation in FUNCTION:
                assert relation.split(":")[0] in BELOW_FUNCTION, (sentence.id, governor_relation, relation)


def test_spans_are_in_range_and_clusters_have_at_least_two_mentions(corpus: Corpus) -> None:
    clusters: dict[tuple[str, str], int] = defaultdict(int)
    for sentence in sentences(corpus):
        for span in (*(sentence.entities or ()), *(sentence.mentions or ())):
            assert 0 <= span.start < span.end <= len(sentence), sentence.id
        for mention in sentence.mentions or ():
            clusters[sentence.document, mention.label] += 1
    assert clusters and min(clusters.values()) >= 2


def test_documents_are_short_and_contiguous(corpus: Corpus) -> None:
    order = [sentence.document for sentence in sentences(corpus)]
    sizes = Counter(order)
    assert all(5 <= size <= 20 for size in sizes.values())
    assert sum(a != b for a, b in pairwise(order)) == len(sizes) - 1
    assert len({sentence.text for sentence in sentences(corpus)}) == len(corpus)
    assert len({sentence.id for sentence in sentences(corpus)}) == len(corpus)


def test_both_senses_of_every_ambiguous_word_occur(english: Corpus) -> None:
    counts: Counter[str] = Counter()
    for sentence in sentences(english):
        assert sentence.senses is not None and sentence.lemmas is not None
        for lemma, sense in zip(sentence.lemmas, sentence.senses, strict=True):
            if sense is not None:
                assert sense.split("%")[0] == lemma.lower(), (sentence.id, lemma, sense)
                counts[sense] += 1
    words = {sense.split("%")[0] for sense in counts}
    assert words == {"bank", "bat", "spring", "light", "match", "plant"}
    assert len(counts) == 12 and min(counts.values()) >= 12


def test_entities_have_five_labels(english: Corpus) -> None:
    kinds = Counter(span.label for sentence in sentences(english) for span in sentence.entities or ())
    assert set(kinds) == {"PER", "LOC", "ORG", "DATE", "MISC"}
