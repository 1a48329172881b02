"""The workbench: models, corpora, jobs and indices of one server, and what can be asked of them."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from bertology import __version__
from bertology.errors import Refusal
from bertology.recording.store import WORKBENCH_FOLDER
from bertology.server.compute import CheckFunction, ModelThread
from bertology.server.gallery import GALLERY, GallerySentence
from bertology.server.job_queue import JobQueue
from bertology.server.jobs import JobAnswer, JobRequest
from bertology.server.limits import LIMITS
from bertology.server.model_session import CorpusState, ModelSession, ModelState, Sources
from bertology.server.problems import ApiError
from bertology.server.texts import RequestModel

if TYPE_CHECKING:
    from bertology.corpus.corpus import Corpus
    from bertology.encoder.encoder import TaskEncoder
    from bertology.encoder.predictions import Predictions
    from bertology.encoder.token_batch import RecordedInput
    from bertology.server.head_card import HeadCard
    from bertology.server.indices import Indices
    from bertology.server.interventions import DerivedModels
    from bertology.server.known_results import KnownResult, KnownResults
    from bertology.server.live import LiveAnswer, LiveRequest
    from bertology.server.texts import TextRequest
    from bertology.views.payload import HeadLabel, HeadMeasure

MAX_CARDS = 64


class WorkbenchState(BaseModel):
    """What the server is, has loaded and is doing."""

    version: str
    models: list[ModelState]
    corpora: list[CorpusState]
    against: str
    jobs: dict[str, int]
    gallery: list[GallerySentence]
    max_tokens: int
    max_characters: int


class Workbench:
    """One server; models and their relatives are imported when they are first needed."""

    def __init__(self, sources: Sources, store: Path, *, against: str = "") -> None:
        self.sources = sources
        self.store = store
        self.against = against
        self.session = ModelSession(sources)
        self.model_thread = ModelThread()
        self.jobs = JobQueue(store / WORKBENCH_FOLDER, store)
        self._parts: dict[str, Any] = {}
        self._parts_lock = threading.Lock()
        self._cards: OrderedDict[tuple[Any, ...], HeadCard] = OrderedDict()

    def start(self) -> None:
        """Begin to load the first models and the corpus, and to work on the queue."""
        first = next(iter(self.sources.models))
        self.session.import_first("bertology.server.api")  # the first request imports it as well
        self.session.load(first)
        for corpus in self.sources.corpora:
            self.session.load_corpus(corpus)
        if self.against:
            self.session.load(self.against)
        self.jobs.start()

    def close(self) -> None:
        """End all that runs."""
        self.jobs.close()
        self.model_thread.close()
        self.session.close()

    @property
    def derived(self) -> DerivedModels:
        """Encoders with interventions."""
        from bertology.server.interventions import DerivedModels

        return self._part("derived", DerivedModels)

    @property
    def indices(self) -> Indices:
        """Indices of the corpus."""
        from bertology.server.indices import Indices

        return self._part("indices", lambda: Indices(self.store))

    @property
    def results(self) -> KnownResults:
        """Results in the store."""
        from bertology.server.known_results import KnownResults

        return self._part("results", lambda: KnownResults(self.store))

    def _part(self, name: str, build: Any) -> Any:
        with self._parts_lock:
            if name not in self._parts:
                self._parts[name] = build()
            return self._parts[name]

    def state(self) -> WorkbenchState:
        """What is loaded, what is loading and since when."""
        counts: dict[str, int] = {}
        for job in self.jobs.answers():
            counts[job.state] = counts.get(job.state, 0) + 1
        return WorkbenchState(
            version=__version__,
            models=self.session.states,
            corpora=self.session.corpus_states,
            against=self.against,
            jobs=counts,
            gallery=list(GALLERY),
            max_tokens=LIMITS.tokens,
            max_characters=LIMITS.text_characters,
        )

    def corpus_if_read(self, name: str) -> Corpus | None:
        """The corpus, or None if it has not been read yet; one that the server may not use is refused."""
        self.sources.corpus(name)
        try:
            return self.session.corpus(name)
        except ApiError:
            return None

    def tokenise(self, encoder: TaskEncoder, request: TextRequest) -> RecordedInput:
        """The input of a request."""
        from bertology.server.texts import tokenise_request

        corpus = self.session.corpus(request.corpus) if request.example is not None else None
        return tokenise_request(encoder, request, corpus)

    def live(self, request: LiveRequest, check: CheckFunction, reference: Predictions | None = None) -> LiveAnswer:
        """One text in one model; runs in the model thread."""
        from bertology.server.interventions import kept_layers
        from bertology.server.live import compute_live

        original = self.session.encoder(request.model)
        recorded = self.tokenise(original, request)
        corpus = self.corpus_if_read(request.corpus) if request.intervention.mean else None
        encoder = self.derived.derive(original, request.intervention, corpus)
        _check_layers(request.layers, original.layers, original.name)
        return compute_live(
            encoder,
            recorded,
            request,
            running_layers=kept_layers(original, request.intervention),
            check=check,
            reference=reference,
        )

    def submit(self, request: JobRequest) -> JobAnswer:
        """Queue a job that may run."""
        from bertology.server.catalogue import check_job

        checked = check_job(request, self.sources)
        sources = {
            "model": self.sources.models[checked.model],
            "corpus": self.sources.corpora[checked.corpus],
            "against": self.sources.models[checked.against] if checked.against else "",
        }
        return self.jobs.submit(checked, sources, self._estimate(checked))

    def _estimate(self, request: JobRequest) -> float | None:
        """Seconds that the declaration of an analysis says it takes; None for other jobs."""
        corpus = self.corpus_if_read(request.corpus)
        if request.kind != "analysis" or corpus is None:
            return None
        from bertology.analyses import registry
        from bertology.analyses.run import RunInputs, estimate_run_seconds

        inputs = RunInputs(corpus=corpus[: request.limit] if request.limit else corpus)
        return estimate_run_seconds([(registry.get(request.analysis), request.options)], inputs)

    def head_card(self, head_name: str, model: str, corpus_name: str) -> HeadCard:
        """All that is known of a head over the corpus."""
        from bertology.encoder.variants import parse_heads
        from bertology.server.head_card import build_card
        from bertology.server.known_results import unsuited_analyses

        encoder, corpus = self.session.encoder(model), self.session.corpus(corpus_name)
        (head,) = parse_heads(encoder, [head_name])
        results = self._known_results(encoder, corpus)
        index = self.indices.links(encoder, corpus)
        claims = self.claim_records(encoder.name, corpus.name)
        known = tuple((name, result.settings) for name, result in results.items())
        key = (encoder.name, corpus.name, head, known, index is None, tuple(record["job"] for record in claims))
        if key not in self._cards:
            shape = encoder.layers, encoder.heads
            unsuited = unsuited_analyses(encoder, corpus)
            names = {"model": encoder.name, "corpus": corpus.name}
            card = build_card(head, shape, results, index, claims, **names, unsuited=unsuited)
            self._cards[key] = card
            while len(self._cards) > MAX_CARDS:
                self._cards.popitem(last=False)
        return self._cards[key]

    def head_measures(self, model: str, corpus_name: str) -> tuple[list[HeadMeasure], list[HeadLabel]]:
        """Measures and labels of all heads, of the results that head cards are made of."""
        from bertology.views.head_labels import labels_from_results
        from bertology.views.head_measures import measures_from_results

        encoder, corpus = self.session.encoder(model), self.session.corpus(corpus_name)
        known = self._known_results(encoder, corpus).values()
        shape = encoder.layers, encoder.heads
        measures = [
            measure.model_copy(
                update={"source": f"{measure.source}, {each.settings}" if each.settings else measure.source}
            )
            for each in known
            for measure in measures_from_results([each.result], *shape)
        ]
        return measures, labels_from_results([each.result for each in known], *shape)

    def _known_results(self, encoder: TaskEncoder, corpus: Corpus) -> dict[str, KnownResult]:
        done = [job.request for job in self.jobs.answers() if job.state == "done" and job.request.kind == "analysis"]
        return self.results.of_heads(encoder, corpus, done, self.session.encoder)

    def claim_records(self, model: str, corpus: str) -> list[Mapping[str, Any]]:
        """The records of all claims that finished jobs have tested on a model, the newest first."""
        from bertology.server.known_results import describe_settings

        records: dict[str, Mapping[str, Any]] = {}
        for job in self.jobs.answers():
            request = job.request
            if job.state == "done" and request.kind == "claims" and (request.model, request.corpus) == (model, corpus):
                settings = describe_settings(request)
                for record in json.loads(self.jobs.files.result_text(job.id))["claims"]:
                    records.setdefault(record["id"], {**record, "settings": settings, "job": job.id})
        return list(records.values())


class HeadRequest(RequestModel):
    """A head by name, such as 4-4."""

    head: str = Field(pattern=r"^\d{1,3}-\d{1,4}$")
    model: str = ""
    corpus: str = ""


def _check_layers(layers: list[int] | None, n_layers: int, name: str) -> None:
    for layer in layers or ():
        if not 1 <= layer <= n_layers:
            raise Refusal(
                f"{name} has no layer {layer}", f"numbers from 1 to {n_layers}", "Choose a layer of the model"
            )
