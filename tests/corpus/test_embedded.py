"""The built-in corpora are what their data card says: valid trees, balanced annotation, both senses of each word."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

import pytest

from bertology.corpus.builtin import BUILT_IN, PAIRS, corpus_named
from bertology.corpus.corpus import Corpus
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


@pytest.fixture(scope="module", params=sorted(BUILT_IN.keys() - PAIRS))
def corpus(request: pytest.FixtureRequest) -> Corpus:
    return corpus_named(request.param)


@pytest.fixture(scope="module")
def english() -> Corpus:
    return corpus_named("english")


def sentences(corpus: Corpus) -> list[Sentence]:
    return list(corpus.sentences)


def test_sizes() -> None:
    assert len(corpus_named("english")) >= 300
    assert len(corpus_named("chinese")) >= 60


def test_nothing_was_skipped_and_every_layer_is_there(corpus: Corpus) -> None:
    assert not corpus.skipped
    needed = {"pos", "heads", "relations", "lemmas", "entities", "mentions"}
    for layer in needed | ({"senses"} if corpus.name.startswith("english") else set()):
        assert corpus.layers[layer] == len(corpus), layer


def test_words_stand_where_their_offsets_say(corpus: Corpus) -> None:
    for sentence in sentences(corpus):
        assert sentence.text.strip() == sentence.text
        for word, (start, end) in zip(sentence.words, sentence.offsets, strict=True):
            assert sentence.text[start:end] == word, sentence.id


def test_trees_are_trees(corpus: Corpus) -> None:
    for sentence in sentences(corpus):
        assert sentence.heads is not None and sentence.relations is not None and sentence.pos is not None
        assert [r == "root" for r in sentence.relations] == [h == ROOT for h in sentence.heads], sentence.id
        assert sentence.heads.count(ROOT) == 1, sentence.id
        for word in range(len(sentence)):
            seen: set[int] = set()
            while word != ROOT:
                assert word not in seen, sentence.id
                seen.add(word)
                word = sentence.heads[word]
        assert set(sentence.pos) <= UPOS, sentence.id
        assert {relation.split(":")[0] for relation in sentence.relations} <= RELATIONS, sentence.id


def test_function_words_and_punctuation_have_no_phrases_below_them(corpus: Corpus) -> None:
    for sentence in sentences(corpus):
        assert sentence.heads is not None and sentence.relations is not None
        for head, relation in zip(sentence.heads, sentence.relations, strict=True):
            if head == ROOT:
                continue
            above = sentence.relations[head].split(":")[0]
            assert above not in LEAVES, (sentence.id, relation)
            if above in FUNCTION:
                assert relation.split(":")[0] in BELOW_FUNCTION, (sentence.id, above, relation)


def test_spans_lie_inside_their_sentence_and_clusters_have_company(corpus: Corpus) -> None:
    clusters: dict[tuple[str, str], int] = defaultdict(int)
    for sentence in sentences(corpus):
        for span in (*(sentence.entities or ()), *(sentence.mentions or ())):
            assert 0 <= span.start < span.end <= len(sentence), sentence.id
        for mention in sentence.mentions or ():
            clusters[sentence.document, mention.label] += 1
    assert clusters and min(clusters.values()) >= 2


def test_documents_are_short_and_run_on(corpus: Corpus) -> None:
    order = [sentence.document for sentence in sentences(corpus)]
    sizes = Counter(order)
    assert all(5 <= size <= 20 for size in sizes.values())
    assert sum(a != b for a, b in pairwise(order)) == len(sizes) - 1
    assert len({sentence.text for sentence in sentences(corpus)}) == len(corpus)
    assert len({sentence.id for sentence in sentences(corpus)}) == len(corpus)


def test_both_senses_of_every_word_occur(english: Corpus) -> None:
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


def test_entities_are_of_five_kinds(english: Corpus) -> None:
    kinds = Counter(span.label for sentence in sentences(english) for span in sentence.entities or ())
    assert set(kinds) == {"PER", "LOC", "ORG", "DATE", "MISC"}
