"""The corpus, a page at a time, searched by word, part of speech, dependency relation and label."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel, Field

from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.sentence import Sentence
from bertology.errors import Refusal
from bertology.server.limits import LIMITS
from bertology.server.texts import RequestModel


class CorpusRequest(RequestModel):
    """What a text must have, all in one word: form in any case, tag and relation; and the label of the example."""

    corpus: str = ""
    word: str = Field(default="", max_length=200)
    pos: str = Field(default="", max_length=50)
    relation: str = Field(default="", max_length=50)
    label: str = Field(default="", max_length=200)
    start: int = Field(default=0, ge=0)
    count: int = Field(default=20, ge=1, le=LIMITS.page_size)


class BrowsedSegment(BaseModel):
    """A text of an example with the annotations of its words, and the words that the search found."""

    text: str
    words: list[str]
    pos: list[str] | None
    relations: list[str] | None
    governors: list[int] | None
    matches: list[int]


class BrowsedExample(BaseModel):
    """An example of the corpus; `index` is counted from 0."""

    index: int
    id: str
    kind: str
    label: str | None
    segments: list[BrowsedSegment]


class CorpusPage(BaseModel):
    """A page of the examples that fit, of `n_examples` that do, of `total` in the corpus.

    `n_words` words fit, of `total_words`.
    """

    corpus: str
    start: int
    n_examples: int
    total: int
    n_words: int
    total_words: int
    examples: list[BrowsedExample]


def browse(corpus: Corpus, request: CorpusRequest) -> CorpusPage:
    """The examples of the corpus that fit the request."""
    _check_annotations(corpus, request)
    fitting = [(index, example) for index, example in enumerate(corpus) if _fits(example, request)]
    shown = fitting[request.start : request.start + request.count]
    searches_words = bool(request.word or request.pos or request.relation)
    n_words = sum(len(list(_matches(s, request))) for _, e in fitting for s in e.segments) if searches_words else 0
    return CorpusPage(
        corpus=corpus.name,
        start=request.start,
        n_examples=len(fitting),
        total=len(corpus),
        n_words=n_words,
        total_words=sum(len(sentence) for sentence in corpus.sentences),
        examples=[browsed_example(index, example, request) for index, example in shown],
    )


def browsed_example(index: int, example: Example, request: CorpusRequest | None = None) -> BrowsedExample:
    """An example with its annotations."""
    return BrowsedExample(
        index=index,
        id=example.id,
        kind=example.kind,
        label=example.label,
        segments=[_segment(segment, request) for segment in example.segments],
    )


def _segment(sentence: Sentence, request: CorpusRequest | None) -> BrowsedSegment:
    tags = sentence.pos or sentence.xpos
    return BrowsedSegment(
        text=sentence.text,
        words=list(sentence.words),
        pos=None if tags is None else list(tags),
        relations=None if sentence.relations is None else list(sentence.relations),
        governors=None if sentence.governors is None else list(sentence.governors),
        matches=[] if request is None else list(_matches(sentence, request)),
    )


def _fits(example: Example, request: CorpusRequest) -> bool:
    if request.label and request.label not in {example.label, *example.labels.values()}:
        return False
    if not (request.word or request.pos or request.relation):
        return True
    return any(True for segment in example.segments for _ in _matches(segment, request))


def _matches(sentence: Sentence, request: CorpusRequest) -> Iterator[int]:
    """The words that have all that is asked for; none if nothing is asked of words."""
    if not (request.word or request.pos or request.relation):
        return
    tags, relations = sentence.pos or sentence.xpos, sentence.relations
    for index, word in enumerate(sentence.words):
        if request.word and word.lower() != request.word.lower():
            continue
        if request.pos and (tags is None or tags[index] != request.pos):
            continue
        relation = "" if relations is None else relations[index]
        if request.relation and request.relation not in {relation, relation.split(":")[0]}:
            continue
        yield index


def _check_annotations(corpus: Corpus, request: CorpusRequest) -> None:
    needed = {"pos": request.pos, "relations": request.relation, "label": request.label}
    has_tags = corpus.annotations["pos"] or corpus.annotations["xpos"]
    for name, value in needed.items():
        if value and not (has_tags if name == "pos" else corpus.annotations[name]):
            raise Refusal(
                f"{corpus.name} has no {name} to search by ({corpus.annotation_list})",
                "an annotation that the corpus has",
                "Search by word, or serve an annotated corpus",
            )
