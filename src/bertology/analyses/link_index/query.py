"""Search the links of a head: which words it links, how often, and how often chance would.

A query in words is `4-4 NOUN -> VERB > 0.5`: a head, a pattern of the word that attends, a pattern of the word that is
attended to, and a weight. A pattern is `*`, a part of speech (`NOUN`), a word in quotation marks (`"the"`) or a
dependency relation with @ (`@nsubj`). `by obj` keeps links from a word to its governor of that relation, `by <obj` from
a governor to its dependent; `at -1` keeps links to the word one before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bertology.analyses.link_index.index import AnnotatedWords, LinkIndex
from bertology.analyses.link_index.site import COMPLETE_ABOVE
from bertology.arrays import BoolArray
from bertology.encoder.encoder import Head
from bertology.errors import Refusal, unknown_name
from bertology.estimates.estimate import Estimate
from bertology.estimates.resampling import bootstrap_proportion

USAGE = 'Write for example: 4-4 NOUN -> VERB > 0.5, or: 3-1 "the" -> * > 0.3 by det, or: 2-1 * -> * > 0.5 at -1'
_PATTERN = r'\*|@[^\s<>"]+|"[^"]+"|[^\s<>"@*]+'
_QUERY = re.compile(
    rf"(?P<head>\d+-\d+)\s+(?P<source>{_PATTERN})\s*(?:->|→)\s*(?P<target>{_PATTERN})(?P<conditions>.*)"
)
_CONDITION = re.compile(r"\s*(?P<name>>)\s*(?P<value>[\d.]+)|\s+(?P<word>by|at)\s+(?P<text>\S+)")


@dataclass(frozen=True)
class WordPattern:
    """What a word must be: its form in any case, its part of speech, its relation; empty fields say nothing."""

    word: str = ""
    pos: str = ""
    relation: str = ""

    def matches(self, words: AnnotatedWords) -> BoolArray:
        """Whether each word of an input has what the pattern asks for."""
        matching = words.has_tokens.copy()
        if self.word:
            matching &= np.array([form == self.word.lower() for form in words.forms], np.bool_)
        if self.pos:
            matching &= np.array([tag == self.pos for tag in words.pos], np.bool_)
        if self.relation:
            matching &= np.array([_has_relation(name, self.relation) for name in words.relations], np.bool_)
        return matching


@dataclass(frozen=True)
class LinkQuery:
    """Links of a head above a weight between two patterns.

    `relation`: the target is the governor of the source by this relation, with `to_dependent` the other way round.
    `offset`: the distance from source to target in words, negative to the left.
    """

    head: Head
    source: WordPattern = WordPattern()
    target: WordPattern = WordPattern()
    min_weight: float = 0.5
    relation: str = ""
    to_dependent: bool = False
    offset: int | None = None

    def pairs(self, words: AnnotatedWords) -> BoolArray:
        """(source, target) pairs of words of an input that the query is about."""
        pairs = words.other_words() & self.source.matches(words)[:, None] & self.target.matches(words)[None, :]
        if self.relation:
            pairs &= _relation_pairs(words, self.relation, to_dependent=self.to_dependent)
        if self.offset is not None:
            pairs &= np.eye(len(words), k=self.offset, dtype=np.bool_)
        return pairs


@dataclass(frozen=True)
class Link:
    """A link in an input of the recording: word indices and weight."""

    input_index: int
    source: int
    target: int
    weight: float


@dataclass(frozen=True)
class LinkSearch:
    """The links of a query, strongest first, and how many there are beside chance.

    `n_pairs` pairs of words fit the patterns, and `n_links` of them are linked. From the words that fit the source
    pattern the head has `n_source_links` links above the weight; `proportion` of these fit the query. `expected` would,
    if each of them went to a random other word of its sentence. Below a weight of 1/4 some links are not in the index,
    and the search is not `complete`.
    """

    links: tuple[Link, ...]
    n_links: int
    n_pairs: int
    n_source_links: int
    expected: float
    proportion: Estimate
    complete: bool


def parse_query(text: str) -> LinkQuery:
    """A query in words; refused if it cannot be read."""
    match = _QUERY.fullmatch(text.strip())
    conditions = _parse_conditions(match["conditions"]) if match is not None else None
    if match is None or conditions is None:
        raise Refusal(f"The search {text.strip()[:80]!r} cannot be read", "HEAD SOURCE -> TARGET > WEIGHT", USAGE)
    weight, relation, offset = conditions.get(">", "0.5"), conditions.get("by", ""), conditions.get("at")
    try:
        return LinkQuery(
            Head.parse(match["head"]),
            _parse_pattern(match["source"]),
            _parse_pattern(match["target"]),
            float(weight),
            relation.removeprefix("<"),
            relation.startswith("<"),
            None if offset is None else int(offset),
        )
    except ValueError:
        numbers = " and ".join(filter(None, [f"> {weight}", "" if offset is None else f"at {offset}"]))
        expected = "a weight from 0 to 1, and a whole number of words for `at`"
        raise Refusal(f"The search has {numbers}", expected, USAGE) from None


def _parse_conditions(text: str) -> dict[str, str] | None:
    """The values of `>`, `by` and `at`, in any order; None if something else stands there, or one of them twice."""
    values: dict[str, str] = {}
    start = 0
    while start < len(text):
        condition = _CONDITION.match(text, start)
        name = "" if condition is None else condition["name"] or condition["word"]
        if condition is None or name in values:
            return None
        values[name] = condition["value"] or condition["text"]
        start = condition.end()
    return values


def check_query(query: LinkQuery, index: LinkIndex) -> None:
    """Refuse heads, tags and relations that the model or the corpus does not have, and weights that are none."""
    layers, heads = index.shape
    if not (0 <= query.head[0] < layers and 0 <= query.head[1] < heads):
        raise Refusal(f"There is no head {query.head}", f"heads from 1-1 to {layers}-{heads}", USAGE)
    if not 0 <= query.min_weight <= 1:
        raise Refusal(f"The weight is {query.min_weight:g}", "a number from 0 to 1", USAGE)
    if query.offset == 0:
        raise Refusal("The offset is 0", "a distance to another word, such as -1", USAGE)
    for pattern in (query.source, query.target):
        if pattern.pos and pattern.pos not in index.pos_tags:
            raise unknown_name("part of speech in the corpus", pattern.pos, index.pos_tags, remedy=USAGE)
    for relation in filter(None, (query.relation, query.source.relation, query.target.relation)):
        if not any(_has_relation(name, relation) for name in index.relation_names):
            raise unknown_name("dependency relation in the corpus", relation, index.relation_names, remedy=USAGE)


def search_links(index: LinkIndex, query: LinkQuery, *, seed: int = 0) -> LinkSearch:
    """All links of the head that fit the query, counted beside chance."""
    check_query(query, index)
    links: list[Link] = []
    n_pairs, expected = 0, 0.0
    correct, total = np.zeros(len(index.inputs)), np.zeros(len(index.inputs))
    for number, (words, head_links) in enumerate(zip(index.inputs, index.links(query.head), strict=True)):
        pairs = query.pairs(words)
        sources = query.source.matches(words)
        is_strong = (head_links.weights > query.min_weight) & (head_links.targets >= 0) & sources[None, :]
        n_strong = is_strong.sum(0)
        n_others = max(1, int(words.has_tokens.sum()) - 1)
        n_pairs += int(pairs.sum())
        expected += float((n_strong * pairs.sum(1)).sum()) / n_others
        total[number] = n_strong.sum()
        for link, source in zip(*np.nonzero(is_strong), strict=True):
            target = int(head_links.targets[link, source])
            if pairs[source, target]:
                correct[number] += 1
                links.append(Link(number, int(source), target, float(head_links.weights[link, source])))
    links.sort(key=lambda link: -link.weight)
    return LinkSearch(
        tuple(links),
        len(links),
        n_pairs,
        int(total.sum()),
        expected,
        bootstrap_proportion(correct[:, None], total[:, None], seed=seed)[0],
        query.min_weight >= COMPLETE_ABOVE,
    )


def _parse_pattern(text: str) -> WordPattern:
    if text == "*":
        return WordPattern()
    if text.startswith("@"):
        return WordPattern(relation=text[1:])
    if text.startswith('"'):
        return WordPattern(word=text.strip('"'))
    return WordPattern(pos=text)


def _has_relation(name: str | None, relation: str) -> bool:
    """Whether a relation is the one named or a subtype of it."""
    return name is not None and (name == relation or name.split(":")[0] == relation)


def _relation_pairs(words: AnnotatedWords, relation: str, *, to_dependent: bool) -> BoolArray:
    """(source, target) pairs of a word and its governor by a relation."""
    pairs = np.zeros((len(words), len(words)), np.bool_)
    for word, governor in _edges(words, relation):
        pairs[(governor, word) if to_dependent else (word, governor)] = True
    return pairs


def _edges(words: AnnotatedWords, relation: str) -> Iterator[tuple[int, int]]:
    for word, governor in enumerate(words.governors.tolist()):
        if governor >= 0 and _has_relation(words.relations[word], relation):
            yield word, governor
