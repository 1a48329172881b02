"""The models and corpora that a server may use, by public name; models are loaded in a thread, one after another."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from bertology.errors import Refusal, unknown_name
from bertology.input_files import expand_path, path_exists
from bertology.machine_errors import find_machine_error
from bertology.server.problems import ApiError, describe_problem, internal_error

if TYPE_CHECKING:
    from bertology.corpus.corpus import Corpus
    from bertology.encoder.encoder import TaskEncoder

ModelStatus = Literal["not loaded", "loading", "ready", "failed"]


class ModelState(BaseModel):
    """What is known of a model: while it loads, since when; when it is ready, its size and task heads."""

    name: str
    status: ModelStatus
    since: float | None = None
    seconds: float | None = None
    message: str = ""
    layers: int = 0
    heads: int = 0
    max_tokens: int = 0
    task_heads: list[str] = []
    labels: list[str] = []
    mask_token: str = ""
    causal: bool = False
    fingerprint: str = ""


class CorpusState(BaseModel):
    """The corpus: its size and annotations when it has been read."""

    name: str
    status: ModelStatus
    message: str = ""
    examples: int = 0
    words: int = 0
    annotations: dict[str, int] = {}
    labels: list[str] = []
    fingerprint: str = ""


@dataclass(frozen=True)
class Sources:
    """What was named at the start, by public name: a path's public name is its last part."""

    models: Mapping[str, str]
    corpora: Mapping[str, str]

    @classmethod
    def from_names(cls, models: list[str], corpora: list[str]) -> Sources:
        """Public names of models and corpora; two with the same last part are numbered."""
        return cls(_public_names(models), _public_names(corpora))

    def model(self, name: str) -> tuple[str, str]:
        """Public name and source of a model; the first one if the name is empty."""
        return _find("model", name, self.models)

    def corpus(self, name: str) -> tuple[str, str]:
        """Public name and source of a corpus; the first one if the name is empty."""
        return _find("corpus", name, self.corpora)


def _find(kind: str, name: str, sources: Mapping[str, str]) -> tuple[str, str]:
    if not name:
        return next(iter(sources.items()))
    if name not in sources:
        raise ApiError(403, unknown_name(f"{kind} that this server may use", name[:100], sources, remedy=ALLOW_REMEDY))
    return name, sources[name]


ALLOW_REMEDY = "Name it when the server starts: `bertology serve MODEL --corpus CORPUS --allow MODEL`"


def _public_names(names: list[str]) -> dict[str, str]:
    public: dict[str, str] = {}
    for source in dict.fromkeys(names):
        prefix, colon, rest = source.rpartition(":")
        name = f"{prefix}{colon}{Path(rest).name if path_exists(expand_path(rest)) else rest}"
        number = 2
        while name in public:
            name, number = f"{name} ({number})", number + 1
        public[name] = source
    return public


class ModelSession:
    """Loads models on demand and keeps them; everything is said by `states`."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="bertology-load")
        self._lock = threading.Lock()
        self._states: dict[str, ModelState] = {n: ModelState(name=n, status="not loaded") for n in sources.models}
        self._encoders: dict[str, TaskEncoder] = {}
        self._corpora: dict[str, Corpus] = {}
        self._corpus_states = {n: CorpusState(name=n, status="not loaded") for n in sources.corpora}

    def import_first(self, module: str) -> None:
        """Begin to import a module before any model is loaded, which imports torch.

        SciPy fails if one thread imports it while another one imports torch.
        """
        self._loader.submit(import_module, module)

    def load(self, name: str) -> None:
        """Begin to load a model, unless it is loading or loaded."""
        public, source = self.sources.model(name)
        with self._lock:
            if self._states[public].status in {"loading", "ready"}:
                return
            self._states[public] = ModelState(name=public, status="loading", since=time())
        self._loader.submit(self._load_model, public, source)

    def load_corpus(self, name: str) -> None:
        """Begin to read a corpus, unless it is being read."""
        public, source = self.sources.corpus(name)
        with self._lock:
            if self._corpus_states[public].status in {"loading", "ready"}:
                return
            self._corpus_states[public] = CorpusState(name=public, status="loading")
        self._loader.submit(self._read_corpus, public, source)

    @property
    def states(self) -> list[ModelState]:
        """The state of every model that may be used."""
        now = time()
        return [
            state.model_copy(update={"seconds": now - (state.since or now)}) if state.status == "loading" else state
            for state in self._states.values()
        ]

    @property
    def corpus_states(self) -> list[CorpusState]:
        """The state of every corpus that may be used."""
        return list(self._corpus_states.values())

    def encoder(self, name: str) -> TaskEncoder:
        """A loaded model; if it is not loaded yet, loading begins and the request is refused for now."""
        public, _ = self.sources.model(name)
        if self._states[public].status == "not loaded":
            self.load(public)
        state = self._states[public]
        if state.status == "failed":
            raise ApiError(409, Refusal(f"{public} could not be loaded", "a model that loads", state.message))
        if public not in self._encoders:
            raise ApiError(503, Refusal(f"{public} is loading", "a loaded model", "Try again in a moment"))
        return self._encoders[public]

    def corpus(self, name: str) -> Corpus:
        """A corpus that has been read; reading begins if it has not."""
        public, _ = self.sources.corpus(name)
        if self._corpus_states[public].status == "not loaded":
            self.load_corpus(public)
        state = self._corpus_states[public]
        if state.status == "failed":
            raise ApiError(409, Refusal(f"{public} could not be read", "a corpus that can be read", state.message))
        if public not in self._corpora:
            raise ApiError(503, Refusal(f"{public} is being read", "a corpus in memory", "Try again in a moment"))
        return self._corpora[public]

    def close(self) -> None:
        """Drop what waits to be loaded."""
        self._loader.shutdown(wait=False, cancel_futures=True)

    def _load_model(self, name: str, source: str) -> None:
        start = monotonic()
        try:
            encoder = load_public(source, name)
            state = describe_model(name, encoder)
        except Exception as error:
            message = _failure(error)
            self._states[name] = ModelState(name=name, status="failed", message=message)
            return
        self._encoders[name] = encoder
        self._states[name] = state.model_copy(update={"seconds": monotonic() - start})

    def _read_corpus(self, name: str, source: str) -> None:
        try:
            corpus = read_public(source, name)
            labels = sorted({e.label for e in corpus if e.label is not None})[:100]
            state = CorpusState(
                name=name,
                status="ready",
                examples=len(corpus),
                words=sum(len(sentence) for sentence in corpus.sentences),
                annotations=dict(corpus.annotations),
                labels=labels,
                fingerprint=corpus.fingerprint,
            )
        except Exception as error:
            self._corpus_states[name] = CorpusState(name=name, status="failed", message=_failure(error))
            return
        self._corpora[name] = corpus
        self._corpus_states[name] = state


def load_public(source: str, name: str) -> TaskEncoder:
    """Load a model under its public name, which no answer shows a path in."""
    from bertology.encoder.encoder import TaskEncoder
    from bertology.encoder.load import load

    encoder: Any = load(source)
    if not isinstance(encoder, TaskEncoder) or not encoder.layers:
        raise Refusal(f"{name} has static vectors and no attention", "a transformer", "Serve another model")
    named: Any = encoder
    return encoder if encoder.name == name else replace(named, name=name)


def read_public(source: str, name: str) -> Corpus:
    """Read a corpus under its public name."""
    from bertology.corpus.read import load_corpus

    corpus = load_corpus(source)
    return corpus if corpus.name == name else replace(corpus, name=name)


def describe_model(name: str, encoder: TaskEncoder) -> ModelState:
    """The state of a loaded model."""
    from bertology.encoder.token_edits import mask_token
    from bertology.server.limits import LIMITS

    has_labels = bool(encoder.task_heads & {"label", "token"})
    return ModelState(
        name=name,
        status="ready",
        layers=encoder.layers,
        heads=encoder.heads,
        max_tokens=min(encoder.max_length, LIMITS.tokens),
        task_heads=sorted(encoder.task_heads),
        labels=list(encoder.labels) if has_labels else [],
        mask_token=mask_token(encoder),
        causal=encoder.causal,
        fingerprint=encoder.fingerprint,
    )


def _failure(error: Exception) -> str:
    """What is said of a model or corpus that does not load; a mistake of the program is logged."""
    explained = find_machine_error(error) or (error if isinstance(error, Refusal) else None)
    if explained is not None:
        return describe_problem(explained).paragraph
    import logging

    logging.getLogger("bertology.server").error("loading failed", exc_info=error)
    return describe_problem(internal_error()).paragraph
