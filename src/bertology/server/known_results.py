"""The results over a corpus that the page shows: found in the store by all that they depend on, also by the code.

The atlas of heads and the head card read the same results. What another version of the code has computed is not among
them, whatever the list of finished jobs says.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bertology.analyses import registry
from bertology.analyses.declaration import Analysis
from bertology.analyses.presets import find_preset
from bertology.analyses.run import RunInputs, stored_result
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import TaskEncoder
from bertology.results.result import Result
from bertology.results.shapes import HeadGrid, Table
from bertology.server.jobs import JobRequest
from bertology.server.problems import ApiError

DEFAULT_ANALYSES = (
    "attention/entropy", "attention/targets", "attention/distance", "heads/functions", "interventions/head_ablation",
)  # fmt: skip
"""The analyses that are looked up with their defaults, whoever ran them; a head card names those that are missing."""
EVALUATING_ANALYSES = ("interventions/head_ablation",)
"""Those that need a task head, whichever it is."""
MAX_RESULTS = 64


@dataclass(frozen=True)
class KnownResult:
    """A result in the store; `settings` says what was not as by default, and is empty if all was."""

    result: Result
    settings: str = ""


class KnownResults:
    """Looks results up in the store; those that were found are kept, since a result never changes under its key."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._found: OrderedDict[tuple[Any, ...], Result] = OrderedDict()

    def by_default(self, analysis: Analysis, encoder: TaskEncoder, corpus: Corpus) -> Result | None:
        """The result with default options; None if there is none."""
        request = JobRequest(kind="analysis", analysis=analysis.name, model=encoder.name, corpus=corpus.name)
        return self._look_up(request, analysis, encoder, None, corpus)

    def of_heads(
        self,
        encoder: TaskEncoder,
        corpus: Corpus,
        requests: Sequence[JobRequest],
        load: Callable[[str], TaskEncoder],
    ) -> dict[str, KnownResult]:
        """By analysis, the result with default options, else that of the first of the requests which has one.

        `requests` are those of finished jobs, the newest first; `load` gives the model that one compares with.
        """
        results: dict[str, KnownResult] = {}
        for name in DEFAULT_ANALYSES:
            result = self.by_default(registry.get(name), encoder, corpus)
            if result is not None and has_heads(result):
                results[name] = KnownResult(result)
        for request in requests:
            analysis = registry.find(request.analysis)
            if (request.model, request.corpus) != (encoder.name, corpus.name) or analysis is None:
                continue
            if request.analysis not in results:
                result = self._look_up(request, analysis, encoder, load, corpus)
                if result is not None and has_heads(result):
                    results[request.analysis] = KnownResult(result, describe_settings(request))
        return results

    def _look_up(
        self,
        request: JobRequest,
        analysis: Analysis,
        encoder: TaskEncoder,
        load: Callable[[str], TaskEncoder] | None,
        corpus: Corpus,
    ) -> Result | None:
        key = request.model_dump_json(), encoder.fingerprint, corpus.fingerprint
        if key in self._found:
            self._found.move_to_end(key)
            return self._found[key]
        inputs = RunInputs(corpus=corpus, encoder=encoder, store=self._store)
        if request.against and load is not None:
            try:
                inputs = replace(inputs, against=load(request.against))
            except ApiError:  # it is still loading
                return None
        if request.limit is not None:
            inputs = replace(inputs, corpus=corpus[: request.limit])
        options = dict(request.options)
        if request.like:
            options = dict(find_preset(analysis, request.like).with_explicit(options))
        result = stored_result(analysis, inputs, options)
        if result is not None:
            self._found[key] = result
            while len(self._found) > MAX_RESULTS:
                self._found.popitem(last=False)
        return result


def unsuited_analyses(encoder: TaskEncoder, corpus: Corpus) -> dict[str, str]:
    """The analyses with defaults that cannot run on the model and the corpus, and why."""
    reasons: dict[str, str] = {}
    for name in DEFAULT_ANALYSES:
        lacking = [each for each in registry.get(name).annotations if not corpus.annotations[each]]
        if lacking:
            reasons[name] = f"needs {' and '.join(lacking)}, which {corpus.name} lacks"
        elif name in EVALUATING_ANALYSES and not encoder.task_heads:
            reasons[name] = f"needs a task head, which {encoder.name} lacks"
    return reasons


def has_heads(result: Result) -> bool:
    """Whether the numbers of a result are those of single heads."""
    data = result.data
    return isinstance(data, HeadGrid) or (isinstance(data, Table) and "head" in data.attributes)


def describe_settings(request: JobRequest) -> str:
    """What a job was asked for beyond the defaults: texts, papers' options, options, the model to compare with."""
    parts = [f"first {request.limit:,} texts"] if request.limit is not None else []
    parts += [f"like {request.like}"] if request.like else []
    parts += [f"against {request.against}"] if request.against else []
    return ", ".join([*parts, *(f"{name.replace('_', ' ')} {value}" for name, value in request.options.items())])
