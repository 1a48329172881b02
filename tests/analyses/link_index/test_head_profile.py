from __future__ import annotations

from collections import Counter

import pytest

import bertology
from bertology.analyses.link_index.head_profile import (
    link_histograms,
    missed_examples,
    random_examples,
    similar_heads,
    strongest_examples,
)
from bertology.analyses.link_index.index import LinkIndex
from bertology.encoder.encoder import Head
from planted import make_corpus, make_recording, offset_head, random_head, uniform_head

NEXT, NOISE, PREVIOUS = Head(0, 0), Head(0, 1), Head(1, 0)


@pytest.fixture(scope="module")
def index() -> LinkIndex:
    corpus = bertology.read("english", limit=40)
    return LinkIndex(make_recording(corpus, [[offset_head(1), random_head(1)], [offset_head(-1), offset_head(-1)]]))


def test_histograms_show_the_planted_offset_beside_its_base_rate(index: LinkIndex) -> None:
    offset, source, target, relation = link_histograms(index, PREVIOUS)
    bars = {bar.category: bar for bar in offset.bars}
    assert bars["-1"].proportion == 1 and bars["+1"].count == 0
    assert 0 < bars["-1"].base_rate < 0.2 and sum(bar.base_rate for bar in offset.bars) == pytest.approx(1)
    # Every word but the first has a link: tags of targets are those of all words but the last.
    expected = Counter(tag for words in index.inputs for tag in words.pos[:-1])
    assert {bar.category: bar.count for bar in target.bars if bar.count} == dict(expected)
    assert source.n == target.n == relation.n == offset.n == sum(len(words) - 1 for words in index.inputs)
    for histogram in (source, target, relation):
        assert sum(bar.proportion for bar in histogram.bars) == pytest.approx(1)
        assert sum(bar.base_rate for bar in histogram.bars) == pytest.approx(1)


def test_examples_are_the_strongest_links_and_random_ones(index: LinkIndex) -> None:
    strongest = strongest_examples(index, NOISE, 10)
    weights = [link.weight for link in strongest]
    assert weights == sorted(weights, reverse=True) and len({link.input_index for link in strongest}) == 10
    assert weights[0] == max(links.weights.max() for links in index.links(NOISE))
    chosen = random_examples(index, NOISE, 10)
    assert chosen == random_examples(index, NOISE, 10) and len({link.input_index for link in chosen}) == 10
    assert max(link.weight for link in chosen) < weights[0]


def test_missed_words_are_those_that_attend_elsewhere(index: LinkIndex) -> None:
    assert missed_examples(index, PREVIOUS, "previous word", 5) == []
    missed = missed_examples(index, NEXT, "previous word", 5)
    assert len(missed) == 5 and all(link.target == link.source + 1 for link in missed)


def test_the_twin_of_a_head_is_most_alike(index: LinkIndex) -> None:
    first, *_ = similar_heads(index, PREVIOUS, 3)
    assert first.head == Head(1, 1) and first.agreement == 1
    assert 0 < first.mean < 0.6 and first.n == sum(len(words) for words in index.inputs)


def test_a_text_of_one_word_has_no_links() -> None:
    index = LinkIndex(make_recording(make_corpus("yes", "no way"), [[uniform_head]]))
    assert [links.targets[0].tolist() for links in index.links(Head(0, 0))] == [[-1], [1, 0]]
    assert len(strongest_examples(index, Head(0, 0), 5)) == 1
