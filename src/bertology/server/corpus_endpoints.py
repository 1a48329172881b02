"""The endpoints of what is known over the corpus: heads, stored results, texts, links, neighbours."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from bertology.errors import Refusal
from bertology.server.compute import CheckFunction
from bertology.server.corpus_browser import CorpusPage, CorpusRequest, browse
from bertology.server.endpoint import Endpoint
from bertology.server.head_card import HeadCard
from bertology.server.link_search import LinkAnswer, LinkRequest, find_links
from bertology.server.neighbours import NeighbourAnswer, NeighbourRequest, find_neighbours
from bertology.server.problems import ApiError
from bertology.server.texts import RequestModel
from bertology.server.workbench import HeadRequest, Workbench
from bertology.views.payload import HeadLabel, HeadMeasure


class ResultRequest(RequestModel):
    """A stored result by its analysis, with default options."""

    analysis: str = Field(max_length=100)
    model: str = ""
    corpus: str = ""


class MeasureRequest(RequestModel):
    """The model and corpus whose stored measures of heads are asked for."""

    model: str = ""
    corpus: str = ""


class MeasureList(BaseModel):
    """The measures and labels of all heads that results in the store give, over the corpus."""

    measures: list[HeadMeasure]
    labels: list[HeadLabel]


def _head(bench: Workbench, request: HeadRequest, _check: CheckFunction) -> HeadCard:
    return bench.head_card(request.head, request.model, request.corpus)


def _corpus(bench: Workbench, request: CorpusRequest, _check: CheckFunction) -> CorpusPage:
    return browse(bench.session.corpus(request.corpus), request)


def _links(bench: Workbench, request: LinkRequest, _check: CheckFunction) -> LinkAnswer:
    encoder, corpus = bench.session.encoder(request.model), bench.session.corpus(request.corpus)
    index = bench.indices.links(encoder, corpus)
    if index is None:
        raise _no_index("links", encoder.name, corpus.name)
    if not request.query.strip() and not request.head:
        raise Refusal("No head was named", "a head such as 4-4", "Write for example: 4-4 NOUN -> VERB > 0.5")
    return find_links(index, request)


def _neighbours(bench: Workbench, request: NeighbourRequest, _check: CheckFunction) -> NeighbourAnswer:
    encoder, corpus = bench.session.encoder(request.model), bench.session.corpus(request.corpus)
    index = bench.indices.states(encoder, corpus)
    if index is None:
        raise _no_index("states", encoder.name, corpus.name)
    return find_neighbours(encoder, bench.tokenise(encoder, request), index, request)


def _no_index(kind: str, model: str, corpus: str) -> ApiError:
    return ApiError(
        409,
        Refusal(
            f"There is no index of {kind} of {model} on {corpus}",
            "an index that a job has built",
            f"Start the job: POST api/jobs with the kind {kind!r}; it goes on where it was stopped",
        ),
    )


def _results(bench: Workbench, request: ResultRequest, _check: CheckFunction) -> Any:
    """A stored result as `bertology run --json` prints it."""
    from bertology.analyses import registry

    encoder, corpus = bench.session.encoder(request.model), bench.session.corpus(request.corpus)
    analysis = registry.get(request.analysis)
    result = bench.results.by_default(analysis, encoder, corpus)
    if result is None:
        raise ApiError(
            404,
            Refusal(f"There is no result of {analysis.name} in the store", "a result", "Start a job that computes it"),
        )
    return result.to_json()


def _measures(bench: Workbench, request: MeasureRequest, _check: CheckFunction) -> MeasureList:
    measures, labels = bench.head_measures(request.model, request.corpus)
    return MeasureList(measures=measures, labels=labels)


CORPUS_ENDPOINTS = (
    Endpoint("GET", "heads/{head}", "All that is known of one head over the corpus.", HeadRequest, HeadCard, _head),
    Endpoint("GET", "results", "A stored result, as `bertology run --json` prints it.", ResultRequest, None, _results),
    Endpoint("GET", "measures", "Measures and labels of all heads from stored results.", MeasureRequest, MeasureList,
             _measures),
    Endpoint("GET", "corpus", "The corpus by pages, searched by word, tag, relation, label.", CorpusRequest,
             CorpusPage, _corpus),
    Endpoint("POST", "links", "Links of a head between words of the corpus, counted beside chance.", LinkRequest,
             LinkAnswer, _links),
    Endpoint("POST", "neighbours", "Words of the corpus whose states are nearest to that of a token.",
             NeighbourRequest, NeighbourAnswer, _neighbours, in_model_thread=True),
)  # fmt: skip
