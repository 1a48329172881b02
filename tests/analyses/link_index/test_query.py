from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bertology
from bertology.analyses.link_index.index import LinkIndex
from bertology.analyses.link_index.query import LinkQuery, WordPattern, parse_query, search_links
from bertology.analyses.link_index.site import strongest_links_site
from bertology.encoder.encoder import Head
from bertology.errors import Refusal
from bertology.recording.recording import Recording
from planted import make_recording, offset_head, random_head, uniform_head


@pytest.fixture(scope="module")
def recording() -> Recording:
    """Two layers of two heads: the next word, noise; the previous word, uniform."""
    corpus = bertology.read("english", limit=40)
    return make_recording(corpus, [[offset_head(1), random_head(1)], [offset_head(-1), uniform_head]])


@pytest.fixture(scope="module")
def index(recording: Recording) -> LinkIndex:
    return LinkIndex(recording)


def brute_force(
    recording: Recording, head: Head, source_pos: str, target_pos: str, weight: float
) -> tuple[int, int, float]:
    """Links, pairs and expected links, counted pair by pair from the planted attention: one token per word."""
    n_links, n_pairs, expected = 0, 0, 0.0
    for number, recorded in enumerate(recording.inputs):
        attention = np.asarray(recording["attention"][number])[head[0], head[1]][1:-1, 1:-1]
        tags = recorded.text.segments[0].pos or ()
        for i, source in enumerate(tags):
            if source_pos and source != source_pos:
                continue
            fitting = [j for j, target in enumerate(tags) if j != i and target_pos in ("", target)]
            strong = [j for j in range(len(tags)) if j != i and attention[i, j] > weight]
            n_pairs += len(fitting)
            n_links += len(set(fitting) & set(strong))
            expected += len(strong) * len(fitting) / max(1, len(tags) - 1)
    return n_links, n_pairs, expected


@pytest.mark.parametrize("head", ["1-1", "1-2", "2-1", "2-2"])
@pytest.mark.parametrize(("source", "target"), [("NOUN", "VERB"), ("DET", "NOUN"), ("", "NOUN"), ("VERB", "")])
def test_counts_equal_a_count_pair_by_pair(
    recording: Recording, index: LinkIndex, head: str, source: str, target: str
) -> None:
    search = search_links(index, parse_query(f"{head} {source or '*'} -> {target or '*'} > 0.3"))
    n_links, n_pairs, expected = brute_force(recording, Head.parse(head), source, target, 0.3)
    assert (search.n_links, search.n_pairs) == (n_links, n_pairs) and search.complete
    assert search.expected == pytest.approx(expected)


def test_a_planted_head_is_found_far_above_chance_and_noise_at_chance(index: LinkIndex) -> None:
    planted = search_links(index, parse_query("2-1 NOUN -> DET > 0.5 by <det"))
    assert planted.n_links > 2 * planted.expected and planted.n_links > 20
    assert planted.proportion.low > planted.expected / planted.n_source_links
    noise = search_links(index, LinkQuery(Head(0, 1), WordPattern(pos="NOUN"), WordPattern(pos="DET"), 0.25))
    assert noise.proportion.low <= noise.expected / noise.n_source_links <= noise.proportion.high


def test_offsets_words_and_relations_narrow_the_search(index: LinkIndex) -> None:
    everything = search_links(index, parse_query("1-1 * -> * > 0.5"))
    assert search_links(index, parse_query("1-1 * -> * > 0.5 at +1")).n_links == everything.n_links
    assert search_links(index, parse_query("1-1 * -> * > 0.5 at -1")).n_links == 0
    the = search_links(index, parse_query('1-1 "The" -> * > 0.5'))
    assert 0 < the.n_links < everything.n_links
    assert all(index.inputs[link.input_index].forms[link.source] == "the" for link in the.links)
    det = search_links(index, parse_query("1-1 @det -> NOUN > 0.5 by det"))
    assert det.n_links > 0
    for link in det.links:
        words = index.inputs[link.input_index]
        assert words.governors[link.source] == link.target and words.relations[link.source] == "det"


def test_conditions_stand_in_any_order() -> None:
    expected = parse_query('3-1 "the" -> NOUN > 0.3 by <det at -2')
    assert expected == LinkQuery(
        Head(2, 0), WordPattern(word="the"), WordPattern(pos="NOUN"), 0.3, "det", to_dependent=True, offset=-2
    )
    assert parse_query('3-1 "the" -> NOUN at -2 by <det > 0.3') == expected
    assert parse_query('3-1 "the"->NOUN by <det>0.3 at -2').relation == "det>0.3", "a relation ends with a space"


def test_below_a_quarter_the_search_is_not_complete(index: LinkIndex) -> None:
    assert not search_links(index, parse_query("1-2 * -> * > 0.1")).complete


@pytest.mark.parametrize(
    "text",
    ["", "4-4", "NOUN -> VERB", "9-9 * -> *", "1-1 NUON -> *", "1-1 * -> * > 1.5", "1-1 * -> * at 0",
     "1-1 * -> * by nsubjj", "1-1 * -> * > ..", "1-1 * -> * at x", "1-1 * -> * > 0.1 > 0.2", "1-1 * -> * or",
     "1-1 * -> @nothing"],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(index: LinkIndex, text: str) -> None:
    with pytest.raises(Refusal):
        search_links(index, parse_query(text))


def test_the_site_of_a_real_model_keeps_the_three_strongest_words() -> None:
    corpus = bertology.read("english", limit=6)
    encoder: Any = bertology.load("tiny")
    recorded = bertology.record(encoder, corpus, ["attention", strongest_links_site()])
    for number, one in enumerate(recorded.inputs):
        attention, links = (np.asarray(recorded[s][number], np.float64) for s in ("attention", strongest_links_site()))
        words = one.tokens.word_ids
        n = one.tokens.n_words
        between = np.zeros((*attention.shape[:2], n, n))
        for i in range(n):
            for j in range(n):
                rows = attention[:, :, words == i][..., words == j]
                between[:, :, i, j] = rows.sum(-1).mean(-1) if i != j else -1
        order = np.sort(between, -1)[..., ::-1][..., :3]
        np.testing.assert_allclose(np.moveaxis(links[:, :, 3:], 2, -1), order, atol=1e-6)
        targets = np.moveaxis(links[:, :, :3], 2, -1).astype(int)
        np.testing.assert_allclose(np.take_along_axis(between, targets, -1), order, atol=1e-6)
