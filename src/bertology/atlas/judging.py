"""Judge one model for the atlas: its verdicts as a record, which the store keeps."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertology.analyses.cache import AnalysisCache
from bertology.atlas.finding_numbers import count_heads, measure_effect, measure_peak
from bertology.atlas.judged_model import JudgedFinding, JudgedModel
from bertology.atlas.model_names import is_untrained
from bertology.atomic_files import digest_file
from bertology.claims.claim import Claim
from bertology.claims.claim_results import ClaimResult
from bertology.claims.run import claims, select_claims
from bertology.corpus.corpus import Corpus
from bertology.encoder.builtin import BUILT_IN_MODELS, MODELS
from bertology.encoder.encoder import Encoder, TaskEncoder
from bertology.encoder.load import load
from bertology.progress import ProgressCallback, no_progress
from bertology.store_paths import StorePath
from bertology.views.report.findings import Finding
from bertology.views.report.strips import finding_strip

PACKAGE = Path(__file__).parents[1]
CODE_ABOVE = (
    "claims", "atlas/judging.py", "atlas/finding_numbers.py", "atlas/judged_model.py", "views/report/findings.py",
    "views/report/strips.py",
)  # fmt: skip
"""Code above the analyses that a record depends on; how records are compared and drawn is no part of it."""
RANDOM_PREFIXES = ("random:", "static:")


@dataclass(frozen=True)
class JudgingTask:
    """What every model is judged on: the corpus, the arguments of `claims`, how models are loaded, and the store."""

    corpus: Corpus
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    loading: Mapping[str, Any] = field(default_factory=dict[str, Any])
    store: StorePath | None = None

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims that are judged."""
        names = ("without", "full", "train_size")
        selected = {name: self.arguments[name] for name in names if name in self.arguments}
        return select_claims(self.arguments.get("papers", ()), file=self.arguments.get("claims"), **selected)


def judge_model(encoder: Encoder, source: str, task: JudgingTask, progress: ProgressCallback) -> JudgedModel:
    """Judge all claims for a model; the name of the record is its source until an atlas shortens it."""

    def start(title: str) -> ProgressCallback:
        return progress if title == "everything" else no_progress

    results = claims(encoder, task.corpus, **task.arguments, store=task.store, max_hours=None, progress=start)
    model = encoder.model if isinstance(encoder, TaskEncoder) else None
    config = getattr(model, "config", None)
    is_trained = not is_untrained(source)
    return JudgedModel(
        name=source,
        source=source,
        fingerprint=encoder.fingerprint,
        architecture=getattr(config, "model_type", ""),
        n_layers=encoder.layers,
        n_heads=encoder.heads,
        width=encoder.width,
        n_parameters=None if model is None else sum(weight.numel() for weight in model.parameters()),
        is_trained=is_trained,
        unknown_tokens="; ".join(map(str, results.unknown_tokens)),
        findings=tuple(judge_finding(result, is_trained=is_trained) for result in results),
    )


def judge_finding(result: ClaimResult, *, is_trained: bool = True) -> JudgedFinding:
    """The verdict on a claim with the numbers behind it.

    What holds in a model with random weights holds without training, even if more than in another such model.
    """
    finding, strip = Finding(result.claim, result), finding_strip(result)
    described = [summary for each in result.results for summary in each.inputs.values() if isinstance(summary, Mapping)]
    corpora = [summary["corpus"]["fingerprint"] for summary in described if "corpus" in summary]
    return JudgedFinding(
        id=result.claim.id,
        outcome=result.verdict.outcome,
        status="unspecific" if finding.status == "specific" and not is_trained else finding.status,
        qualification=result.verdict.qualification,
        headline=result.headline,
        answer=result.answer,
        obstacle=result.verdict.obstacle,
        unit=result.claim.unit,
        marks=strip.marks if strip is not None else (),
        axis=strip.axis if strip is not None else (0.0, 1.0),
        number=strip.number if strip is not None else "",
        interval=strip.interval if strip is not None else "",
        position=strip.position if strip is not None else "",
        effect=measure_effect(result) if result.results else None,
        peak=measure_peak(result) if result.results else None,
        heads=count_heads(result),
        corpora=tuple(dict.fromkeys(corpora)),
        filled_from=result.filled_from,
    )


def stored_model(source: str, task: JudgingTask) -> JudgedModel | None:
    """The record that an earlier run stored, found without loading the model; None if there is none."""
    content = describe_source(source)
    if task.store is None or content is None:
        return None
    record = AnalysisCache(task.store).lookup(judge_model, _key(source, content, task))
    return None if record is None else JudgedModel.model_validate(record)


def judge_source(source: str, task: JudgingTask, progress: ProgressCallback) -> JudgedModel:
    """Load and judge a model in this process, and store its record."""
    encoder = load(source, **task.loading)
    content = describe_source(source) or encoder.fingerprint
    cache = AnalysisCache(task.store)
    record = cache.get_or_compute(
        judge_model,
        _key(source, content, task),
        lambda: judge_model(encoder, source, task, progress).model_dump(mode="json"),
    )
    return JudgedModel.model_validate(record)


def _key(source: str, content: str, task: JudgingTask) -> dict[str, Any]:
    """All that a record depends on besides the code of the analyses."""
    return {
        "source": source,
        "content": content,
        "corpus": task.corpus.fingerprint,
        "claims": [claim.model_dump_json() for claim in task.claims],
        "arguments": {name: str(value) for name, value in task.arguments.items() if name != "notify"},
        "loading": {name: str(value) for name, value in task.loading.items()},
        "judging": _code_digest(),
    }


def _code_digest() -> str:
    parts = [PACKAGE / name for name in CODE_ABOVE]
    files = [file for part in parts for file in (sorted(part.rglob("*.py")) if part.is_dir() else [part])]
    text = "\n".join(f"{file.relative_to(PACKAGE)} {digest_file(file)}" for file in files)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def describe_source(source: str) -> str | None:
    """The names, sizes and times of the files of a model; None if its name does not say where they are."""
    files = model_files(source)
    if files is None:
        return None
    listing = [(str(file), status.st_size, status.st_mtime_ns) for file in files for status in [file.stat()]]
    return hashlib.sha256(json.dumps([source, listing]).encode()).hexdigest()[:32]


def model_files(source: str) -> list[Path] | None:
    """The files of a model; None if its name does not say where they are."""
    name = source
    while name.startswith(RANDOM_PREFIXES):
        name = name.partition(":")[2]
    built_in = BUILT_IN_MODELS.get(name) or BUILT_IN_MODELS.get(name.rpartition("@")[0])
    if built_in is not None:
        folders = [MODELS / built_in.name, MODELS / built_in.base]
    else:
        folders = [Path(name).expanduser(), Path(name.rpartition("@")[0] or name).expanduser()]
        folders = [folder for folder in folders if folder.is_dir()][:1]
        if not folders:
            return None
    return [file for folder in folders if folder.is_dir() for file in sorted(folder.rglob("*")) if file.is_file()]
