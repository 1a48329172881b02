"""A search finds the words that have all that was asked for, and no others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bertology.corpus.corpus import Corpus, corpus_from_sentences
from bertology.corpus.sentence import Sentence, sentence_from_words
from bertology.errors import Refusal
from bertology.server.corpus_browser import CorpusRequest, browse


def _sentence(words: str, pos: str, relations: str) -> Sentence:
    return replace(sentence_from_words(words.split()), pos=tuple(pos.split()), relations=tuple(relations.split()))


def corpus() -> Corpus:
    return corpus_from_sentences(
        [
            _sentence("The dog saw the cat", "DET NOUN VERB DET NOUN", "det nsubj root det obj"),
            _sentence("Dogs were seen", "NOUN AUX VERB", "nsubj:pass aux:pass root"),
            _sentence("Dog eats dog", "NOUN VERB NOUN", "nsubj root obj"),
        ]
    )


@pytest.mark.parametrize(
    ("request_", "matches"),
    [
        ({"relation": "nsubj"}, {0: [1], 1: [0], 2: [0]}),  # with its subtypes
        ({"relation": "nsubj:pass"}, {1: [0]}),
        ({"relation": "obj"}, {0: [4], 2: [2]}),
        ({"word": "DOG"}, {0: [1], 2: [0, 2]}),
        ({"pos": "AUX"}, {1: [1]}),
        ({"word": "dog", "relation": "obj"}, {2: [2]}),  # all in one word
        ({"word": "the", "pos": "NOUN"}, {}),
    ],
)
def test_words_that_fit_are_found(request_: dict[str, Any], matches: dict[int, list[int]]) -> None:
    page = browse(corpus(), CorpusRequest(**request_))
    assert {example.index: example.segments[0].matches for example in page.examples} == matches
    assert (page.n_examples, page.n_words) == (len(matches), sum(map(len, matches.values())))
    assert (page.total, page.total_words) == (3, 11)


def test_a_page_has_so_many_examples() -> None:
    page = browse(corpus(), CorpusRequest(pos="NOUN", start=1, count=1))
    assert [example.index for example in page.examples] == [1] and page.n_examples == 3


def test_annotations_that_the_corpus_lacks_are_refused() -> None:
    plain = corpus_from_sentences([sentence_from_words(["Hm"])], name="plain")
    for request in (CorpusRequest(pos="NOUN"), CorpusRequest(relation="obj"), CorpusRequest(label="1")):
        with pytest.raises(Refusal, match=r"plain has no (pos|relations|label) to search by"):
            browse(plain, request)
