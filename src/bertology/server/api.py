"""The endpoints of the API: path, request, answer, and the function that answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, Field

from bertology.citations import CITATIONS, bibtex_entry
from bertology.encoder.predictions import Predictions
from bertology.errors import Refusal, unknown_name
from bertology.results.result import Result
from bertology.server.catalogue import AnalysisAnswer, ClaimAnswer, all_analyses, list_claims
from bertology.server.compute import CheckFunction
from bertology.server.corpus_browser import CorpusPage, CorpusRequest, browse
from bertology.server.head_card import HeadCard
from bertology.server.interventions import InterventionRequest, random_control
from bertology.server.jobs import JobAnswer, JobRequest, OptionValue
from bertology.server.keep import (
    KeepRequest,
    KeptCommands,
    job_commands,
    live_commands,
    pin_payload,
    pins_page,
    weights_csv,
)
from bertology.server.link_search import LinkAnswer, LinkRequest, find_links
from bertology.server.live import LiveAnswer, LiveRequest
from bertology.server.neighbours import NeighbourAnswer, NeighbourRequest, find_neighbours
from bertology.server.problems import ApiError
from bertology.server.texts import RequestModel
from bertology.server.workbench import HeadRequest, Workbench, WorkbenchState
from bertology.views.payload import HeadLabel, HeadMeasure


class EmptyRequest(RequestModel):
    """Nothing."""


class ModelRequest(RequestModel):
    """A model by its public name."""

    model: str = Field(max_length=300)


class JobIdRequest(RequestModel):
    """A job by its id."""

    id: str = Field(pattern=r"^[\w-]{1,60}$")


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


class FigureRequest(JobIdRequest):
    """The figure of a finished analysis, light or dark; text keeps its size whatever the width."""

    theme: Literal["light", "dark"] = "light"
    width_mm: int = Field(default=180, ge=60, le=400)


class CitationRequest(RequestModel):
    """Papers by key, separated by commas."""

    keys: str = Field(max_length=1000)


class InterveneRequest(LiveRequest):
    """A live request whose intervention is compared with the unchanged model and with a random control."""

    control_seed: int = Field(default=0, ge=0)


class InterveneAnswer(BaseModel):
    """Predictions before and after, and after the same intervention on random other heads or layers.

    This is one text: whether the change is more than chance is a question to the corpus (interventions/head_ablation).
    """

    scope: str = "one text"
    before: Predictions
    after: Predictions
    control: Predictions | None
    control_intervention: InterventionRequest | None
    changes: dict[str, list[str]]
    notes: list[str]
    corpus_job: JobRequest | None


class JobList(BaseModel):
    """All jobs, newest first."""

    jobs: list[JobAnswer]


class AnalysisList(BaseModel):
    """All analyses."""

    analyses: list[AnalysisAnswer]


class ClaimList(BaseModel):
    """All claims."""

    claims: list[ClaimAnswer]


class ModelAnswer(BaseModel):
    """The state of the server after a request."""

    state: WorkbenchState


Handler = Callable[[Workbench, Any, CheckFunction], Any]


@dataclass(frozen=True)
class Endpoint:
    """One path of the API. A `media_type` other than JSON is an answer as text, for download or display.

    `in_model_thread`: the handler runs models, one request at a time.
    """

    method: Literal["GET", "POST", "DELETE"]
    path: str
    summary: str
    request: type[BaseModel]
    answer: type[BaseModel] | None
    handler: Handler
    in_model_thread: bool = False
    media_type: str = "application/json"
    file_name: str = ""


def _state(bench: Workbench, _request: EmptyRequest, _check: CheckFunction) -> WorkbenchState:
    return bench.state()


def _load_model(bench: Workbench, request: ModelRequest, _check: CheckFunction) -> ModelAnswer:
    bench.session.load(request.model)
    return ModelAnswer(state=bench.state())


def _live(bench: Workbench, request: LiveRequest, check: CheckFunction) -> LiveAnswer:
    return bench.live(request, check)


def _intervene(bench: Workbench, request: InterveneRequest, check: CheckFunction) -> InterveneAnswer:
    if request.intervention.is_empty:
        raise Refusal("No head or layer is changed", "an intervention", "Choose a head or a layer")
    lean = request.model_copy(
        update={"layers": [], "measures": False, "strips": False, "neurons": False, "rollout": False, "quantities": []}
    )
    before = bench.live(lean.model_copy(update={"intervention": InterventionRequest()}), check)
    assert before.predictions is not None or not request.predictions, "predictions are part of a live answer"
    after = bench.live(lean, check, before.predictions)
    encoder = bench.session.encoder(request.model)
    control = random_control(encoder, request.intervention, request.control_seed)
    controlled = None
    notes: list[str] = []
    if control is None:
        notes.append("There are not enough other heads or layers for a random control.")
    else:
        controlled = bench.live(lean.model_copy(update={"intervention": control}), check, before.predictions)
    if not encoder.task_heads:
        notes.append(f"{encoder.name} has no task head, so that it predicts nothing.")
    return InterveneAnswer(
        before=before.predictions or Predictions(),
        after=after.predictions or Predictions(),
        control=None if controlled is None else controlled.predictions,
        control_intervention=control,
        changes=after.changes,
        notes=notes,
        corpus_job=_corpus_job(request, encoder.name),
    )


def _corpus_job(request: InterveneRequest, model: str) -> JobRequest | None:
    """The analysis that asks the corpus what the intervention costs, with Holm's correction; None if there is none."""
    changes = request.intervention
    methods = {"zero": changes.off, "uniform": changes.uniform, "mean": changes.mean}
    used = {method: heads for method, heads in methods.items() if heads}
    if len(used) != 1 or changes.keep or changes.layers_off:
        return None
    ((method, heads),) = used.items()
    options: dict[str, OptionValue] = {"ablation": method, "head_sets": ",".join(heads)}
    return JobRequest(kind="analysis", analysis="interventions/head_ablation", options=options, model=model)


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
    result = bench.stored_results(encoder, corpus, (analysis.name,))[analysis.name]
    if result is None:
        raise ApiError(
            404,
            Refusal(f"There is no result of {analysis.name} in the store", "a result", "Start a job that computes it"),
        )
    return result.to_json()


def _measures(bench: Workbench, request: MeasureRequest, _check: CheckFunction) -> MeasureList:
    measures, labels = bench.head_measures(request.model, request.corpus)
    return MeasureList(measures=measures, labels=labels)


def _submit(bench: Workbench, request: JobRequest, _check: CheckFunction) -> JobAnswer:
    return bench.submit(request)


def _jobs(bench: Workbench, _request: EmptyRequest, _check: CheckFunction) -> JobList:
    return JobList(jobs=bench.jobs.answers())


def _job(bench: Workbench, request: JobIdRequest, _check: CheckFunction) -> JobAnswer:
    return bench.jobs.answer(request.id)


def _cancel(bench: Workbench, request: JobIdRequest, _check: CheckFunction) -> JobAnswer:
    return bench.jobs.cancel(request.id)


def _retry(bench: Workbench, request: JobIdRequest, _check: CheckFunction) -> JobAnswer:
    return bench.jobs.retry(request.id)


def _remove(bench: Workbench, request: JobIdRequest, _check: CheckFunction) -> JobList:
    bench.jobs.remove(request.id)
    return JobList(jobs=bench.jobs.answers())


def _job_result(bench: Workbench, request: JobIdRequest, _check: CheckFunction) -> str:
    bench.jobs.get(request.id)
    return bench.jobs.files.result_text(request.id)


def _job_report(bench: Workbench, request: JobIdRequest, _check: CheckFunction) -> str:
    bench.jobs.get(request.id)
    return bench.jobs.files.report_text(request.id)


def _parsed_result(bench: Workbench, job_id: str) -> Result:
    if bench.jobs.get(job_id).request.kind != "analysis":
        raise Refusal("The job has no table", "a job of the kind analysis", "Take its JSON")
    return Result.from_json(bench.jobs.files.result_text(job_id))


def _job_csv(bench: Workbench, request: JobIdRequest, _check: CheckFunction) -> str:
    import csv
    import io

    rows = _parsed_result(bench, request.id).rows()
    names = list(dict.fromkeys(name for row in rows for name in row))
    stream = io.StringIO()
    writer = csv.DictWriter(stream, names)
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _job_figure(bench: Workbench, request: FigureRequest, _check: CheckFunction) -> str:
    return _parsed_result(bench, request.id).figure(theme=request.theme, width=f"{request.width_mm}mm").svg


def _job_bibtex(bench: Workbench, request: JobIdRequest, _check: CheckFunction) -> str:
    return _parsed_result(bench, request.id).bibtex() + "\n"


def _job_commands(bench: Workbench, request: JobIdRequest, _check: CheckFunction) -> KeptCommands:
    return job_commands(bench.jobs.get(request.id).request)


def _bibtex(_bench: Workbench, request: CitationRequest, _check: CheckFunction) -> str:
    keys = [key.strip() for key in request.keys.split(",") if key.strip()]
    for key in keys:
        if key not in CITATIONS:
            raise unknown_name("paper", key, CITATIONS)
    return "\n\n".join(bibtex_entry(key) for key in keys) + "\n"


def _keep(bench: Workbench, request: KeepRequest, check: CheckFunction) -> str:
    answers = [
        [bench.live(live.model_copy(update={"layers": None}), check) for live in (pin.live, pin.against) if live]
        for pin in request.pins
    ]
    texts = [_texts(bench, pin.live) for pin in request.pins]
    payloads = [pin_payload(pin, a, text[0]) for pin, a, text in zip(request.pins, answers, texts, strict=True)]
    commands = [
        live_commands(pin.live, each[0].model, *text)
        for pin, each, text in zip(request.pins, answers, texts, strict=True)
    ]
    return pins_page(request.title, request.pins, payloads, commands)


def _keep_csv(bench: Workbench, request: LiveRequest, check: CheckFunction) -> str:
    return weights_csv(bench.live(request, check))


def _commands(bench: Workbench, request: LiveRequest, _check: CheckFunction) -> KeptCommands:
    model, _ = bench.sources.model(request.model)
    return live_commands(request, model, *_texts(bench, request))


def _texts(bench: Workbench, request: LiveRequest) -> tuple[str, str | None]:
    """The text of a request, or the pair."""
    if request.example is None:
        return request.text, request.text_b
    corpus = bench.session.corpus(request.corpus)
    if request.example >= len(corpus):
        raise Refusal(f"There is no example {request.example}", f"0 to {len(corpus) - 1}", "Choose another")
    segments = corpus[request.example].text_inputs[0].segments
    return segments[0].text, segments[1].text if len(segments) > 1 else None


def _analyses(_bench: Workbench, _request: EmptyRequest, _check: CheckFunction) -> AnalysisList:
    return AnalysisList(analyses=all_analyses())


def _claims(_bench: Workbench, _request: EmptyRequest, _check: CheckFunction) -> ClaimList:
    return ClaimList(claims=list_claims())


HTML, CSV, TEXT, SVG = "text/html", "text/csv", "text/plain", "image/svg+xml"
ENDPOINTS = (
    Endpoint("GET", "state", "What is loaded, what is loading and since when.", EmptyRequest, WorkbenchState, _state),
    Endpoint("POST", "models/load", "Begin to load a model of this server.", ModelRequest, ModelAnswer, _load_model),
    Endpoint("POST", "live", "One text in one model: attention, numbers of heads, predictions.", LiveRequest,
             LiveAnswer, _live, in_model_thread=True),
    Endpoint("POST", "intervene", "Predictions with heads or layers changed, beside a random control.",
             InterveneRequest, InterveneAnswer, _intervene, in_model_thread=True),
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
    Endpoint("GET", "analyses", "All analyses and their options.", EmptyRequest, AnalysisList, _analyses),
    Endpoint("GET", "claims", "All published findings that can be tested.", EmptyRequest, ClaimList, _claims),
    Endpoint("GET", "jobs", "All jobs, newest first.", EmptyRequest, JobList, _jobs),
    Endpoint("POST", "jobs", "Queue an analysis, claims, a report or an index.", JobRequest, JobAnswer, _submit),
    Endpoint("GET", "jobs/{id}", "One job and how far it is.", JobIdRequest, JobAnswer, _job),
    Endpoint("DELETE", "jobs/{id}", "Delete a finished job.", JobIdRequest, JobList, _remove),
    Endpoint("POST", "jobs/{id}/cancel", "Cancel a job.", JobIdRequest, JobAnswer, _cancel),
    Endpoint("POST", "jobs/{id}/retry", "Queue a failed or cancelled job again.", JobIdRequest, JobAnswer, _retry),
    Endpoint("GET", "jobs/{id}/result", "The result, as `--json` prints it.", JobIdRequest, None, _job_result),
    Endpoint("GET", "jobs/{id}/report", "The page of a report.", JobIdRequest, None, _job_report, media_type=HTML,
             file_name="report.html"),
    Endpoint("GET", "jobs/{id}/csv", "The numbers of an analysis as a table.", JobIdRequest, None, _job_csv,
             media_type=CSV, file_name="result.csv"),
    Endpoint("GET", "jobs/{id}/figure", "The figure of an analysis.", FigureRequest, None, _job_figure, media_type=SVG),
    Endpoint("GET", "jobs/{id}/bibtex", "The papers behind an analysis.", JobIdRequest, None, _job_bibtex,
             media_type=TEXT),
    Endpoint("GET", "jobs/{id}/commands", "How to compute a job again.", JobIdRequest, KeptCommands, _job_commands),
    Endpoint("GET", "bibtex", "References of papers.", CitationRequest, None, _bibtex, media_type=TEXT),
    Endpoint("POST", "keep", "Pins as a page that opens offline.", KeepRequest, None, _keep, in_model_thread=True,
             media_type=HTML, file_name="pins.html"),
    Endpoint("POST", "keep/csv", "The weights of a live request as a table.", LiveRequest, None, _keep_csv,
             in_model_thread=True, media_type=CSV, file_name="weights.csv"),
    Endpoint("POST", "commands", "The command line and the Python code of a live request.", LiveRequest, KeptCommands,
             _commands),
)  # fmt: skip
