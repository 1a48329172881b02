"""The endpoints of what is looked at now: one text in one model, what is changed in it, and what is kept of it."""

from __future__ import annotations

from pydantic import BaseModel, Field

from bertology.citations import CITATIONS, bibtex_entry
from bertology.encoder.predictions import Predictions
from bertology.errors import Refusal, unknown_name
from bertology.server.compute import CheckFunction
from bertology.server.endpoint import CSV, HTML, TEXT, EmptyRequest, Endpoint
from bertology.server.interventions import InterventionRequest, random_control
from bertology.server.jobs import JobRequest, OptionValue
from bertology.server.keep import KeepRequest, KeptCommands, live_commands, pin_payload, pins_page, weights_csv
from bertology.server.live import LiveAnswer, LiveRequest
from bertology.server.texts import RequestModel
from bertology.server.workbench import Workbench, WorkbenchState


class ModelRequest(RequestModel):
    """A model by its public name."""

    model: str = Field(max_length=300)


class ModelAnswer(BaseModel):
    """The state of the server after a request."""

    state: WorkbenchState


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


class CitationRequest(RequestModel):
    """Papers by key, separated by commas."""

    keys: str = Field(max_length=1000)


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
    return JobRequest(
        kind="analysis",
        analysis="interventions/head_ablation",
        options=options,
        model=model,
        corpus=request.corpus,
    )


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


def _bibtex(_bench: Workbench, request: CitationRequest, _check: CheckFunction) -> str:
    keys = [key.strip() for key in request.keys.split(",") if key.strip()]
    for key in keys:
        if key not in CITATIONS:
            raise unknown_name("paper", key, CITATIONS)
    return "\n\n".join(bibtex_entry(key) for key in keys) + "\n"


LIVE_ENDPOINTS = (
    Endpoint("GET", "state", "What is loaded, what is loading and since when.", EmptyRequest, WorkbenchState, _state),
    Endpoint("POST", "models/load", "Begin to load a model of this server.", ModelRequest, ModelAnswer, _load_model),
    Endpoint("POST", "live", "One text in one model: attention, numbers of heads, predictions.", LiveRequest,
             LiveAnswer, _live, in_model_thread=True),
    Endpoint("POST", "intervene", "Predictions with heads or layers changed, beside a random control.",
             InterveneRequest, InterveneAnswer, _intervene, in_model_thread=True),
    Endpoint("POST", "keep", "Pins as a page that opens offline.", KeepRequest, None, _keep, in_model_thread=True,
             media_type=HTML, file_name="pins.html"),
    Endpoint("POST", "keep/csv", "The weights of a live request as a table.", LiveRequest, None, _keep_csv,
             in_model_thread=True, media_type=CSV, file_name="weights.csv"),
    Endpoint("POST", "commands", "The command line and the Python code of a live request.", LiveRequest, KeptCommands,
             _commands),
    Endpoint("GET", "bibtex", "References of papers.", CitationRequest, None, _bibtex, media_type=TEXT),
)  # fmt: skip
