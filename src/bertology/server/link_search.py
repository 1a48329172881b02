"""Search over the links of heads in the corpus, from the index that a job builds."""

from __future__ import annotations

from pydantic import BaseModel, Field

from bertology.analyses.link_index.index import LinkIndex
from bertology.analyses.link_index.query import Link, LinkQuery, WordPattern, parse_query, search_links
from bertology.encoder.encoder import Head
from bertology.server.limits import LIMITS
from bertology.server.texts import RequestModel


class PatternRequest(RequestModel):
    """What a word must be; empty fields say nothing."""

    word: str = Field(default="", max_length=200)
    pos: str = Field(default="", max_length=50)
    relation: str = Field(default="", max_length=50)


class LinkRequest(RequestModel):
    """A search in words (`4-4 NOUN -> VERB > 0.5`), or by its parts if `query` is empty."""

    query: str = Field(default="", max_length=300)
    head: str = Field(default="", pattern=r"^(\d{1,3}-\d{1,4})?$")
    source: PatternRequest = PatternRequest()
    target: PatternRequest = PatternRequest()
    min_weight: float = Field(default=0.5, ge=0, le=1)
    relation: str = Field(default="", max_length=50)
    to_dependent: bool = False
    offset: int | None = Field(default=None, ge=-1000, le=1000)
    model: str = ""
    corpus: str = ""
    start: int = Field(default=0, ge=0)
    count: int = Field(default=20, ge=1, le=LIMITS.page_size)


class LinkExample(BaseModel):
    """A link in a text of the corpus: the words of the text, the two that are linked, and the weight."""

    example: int
    words: list[str]
    source: int
    target: int
    weight: float


class LinkAnswer(BaseModel):
    """The links that were found, strongest first, and how many there are beside chance.

    `n_links` of `n_pairs` pairs of words that fit are linked. Of `n_source_links` links from words that fit the source,
    `proportion` [low, high] fit; by chance `chance` would, and `expected` links: the same links to random other words
    of the sentence. If the search is not `complete`, weaker links than 1/4 may be missing from the counts.
    """

    head: str
    n_links: int
    n_pairs: int
    n_source_links: int
    proportion: float | None
    low: float | None
    high: float | None
    chance: float | None
    expected: float
    complete: bool
    summary: str
    start: int
    links: list[LinkExample]


def find_links(index: LinkIndex, request: LinkRequest) -> LinkAnswer:
    """The links of a request and their counts."""
    query = parse_query(request.query) if request.query.strip() else _query(request)
    search = search_links(index, query)
    estimate, n = search.proportion, search.n_source_links
    chance = search.expected / n if n else None
    shown = search.links[request.start : request.start + request.count]
    return LinkAnswer(
        head=str(query.head),
        n_links=search.n_links,
        n_pairs=search.n_pairs,
        n_source_links=n,
        proportion=estimate.value if n else None,
        low=estimate.low if n else None,
        high=estimate.high if n else None,
        chance=chance,
        expected=search.expected,
        complete=search.complete,
        summary=_summary(search.n_links, search.n_pairs, n, chance),
        start=request.start,
        links=[link_example(index, link) for link in shown],
    )


def link_example(index: LinkIndex, link: Link) -> LinkExample:
    """A link with the words of its text."""
    recorded = index.recording.inputs[link.input_index]
    return LinkExample(
        example=recorded.example_index,
        words=list(recorded.text.words),
        source=link.source,
        target=link.target,
        weight=link.weight,
    )


def _query(request: LinkRequest) -> LinkQuery:
    source, target = (
        WordPattern(pattern.word, pattern.pos, pattern.relation) for pattern in (request.source, request.target)
    )
    head = Head.parse(request.head or "1-1")
    return LinkQuery(head, source, target, request.min_weight, request.relation, request.to_dependent, request.offset)


def _summary(n_links: int, n_pairs: int, n_source_links: int, chance: float | None) -> str:
    pairs = f"{n_links:,} of {n_pairs:,} such pairs are linked ({n_links / max(1, n_pairs):.0%})"
    if chance is None:
        return f"{pairs}; the head has no such link from these words."
    of_links = f"{n_links:,} of the {n_source_links:,} links from these words ({n_links / n_source_links:.0%})"
    return f"{pairs}: {of_links}, chance {chance:.0%}.".replace("%", " %")
