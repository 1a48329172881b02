"""The process that computes one job: `python -m bertology.server.worker FOLDER`.

It exits with 0 if the result is written, with 2 if the job was refused (`refusal.json` says why), and with anything
else if it failed. It ends by itself if the server that started it has ended.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from bertology.atomic_files import atomic_writer
from bertology.checked_files import write_checked_json
from bertology.errors import Refusal
from bertology.library_settings import set_library_defaults
from bertology.machine_errors import find_machine_error
from bertology.server.jobs import (
    REFUSAL_FILE,
    RESULT_FILE,
    JobProgress,
    JobRecord,
    JobRequest,
    read_job,
    write_report_digest,
)
from bertology.server.problems import describe_problem

if TYPE_CHECKING:
    from bertology.corpus.corpus import Corpus
    from bertology.encoder.encoder import TaskEncoder
    from bertology.progress import ProgressCallback

WRITE_SECONDS = 0.3
REFUSED = 2
ORPHANED = 3
NICENESS = 5
EVERYTHING = "everything"


class ProgressFile:
    """Progress of the whole job and of its present step, written a few times per second."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "progress.json"
        self._last = 0.0
        self._progress = JobProgress()

    def start(self, title: str) -> ProgressCallback:
        """Begin a step; the step called `everything` is the whole job."""

        def update(done: int, total: int) -> None:
            if title == EVERYTHING:
                self._progress = self._progress.model_copy(update={"done": done, "total": total})
            else:
                fraction = done / total if total else 0.0
                self._progress = self._progress.model_copy(update={"step": title, "step_fraction": fraction})
            if monotonic() - self._last >= WRITE_SECONDS or done >= total:
                self._last = monotonic()
                with atomic_writer(self._file) as stream:
                    stream.write(self._progress.model_dump_json().encode())

        return update


def run_job(folder: Path) -> int:
    """Compute the job of a folder."""
    (folder / "pid").write_text(str(os.getpid()))
    _end_with_parent()
    os.nice(NICENESS)
    job = read_job(folder)
    try:
        _RUNNERS[job.request.kind](job, folder, ProgressFile(folder))
    except Exception as error:
        explained = find_machine_error(error) or (error if isinstance(error, Refusal) else None)
        if explained is not None:
            write_checked_json(folder / REFUSAL_FILE, describe_problem(explained).model_dump())
            return REFUSED
        traceback.print_exc()
        return 1
    return 0


def load_inputs(job: JobRecord) -> tuple[TaskEncoder, TaskEncoder | None, Corpus]:
    """The models and the corpus of a job, under their public names."""
    from bertology.server.model_session import load_public, read_public

    request, sources = job.request, job.sources
    encoder = load_public(sources["model"], request.model)
    against = load_public(sources["against"], request.against) if request.against else None
    return encoder, against, read_public(sources["corpus"], request.corpus)


def _run_analysis(job: JobRecord, folder: Path, progress: ProgressFile) -> None:
    from bertology.analyses import registry
    from bertology.analyses.presets import find_preset, with_published
    from bertology.analyses.run import ProgressEstimate, estimate_run_seconds, run_all

    request = job.request
    analysis = registry.get(request.analysis)
    options: Mapping[str, Any] = request.options
    preset = find_preset(analysis, request.like) if request.like else None
    if preset is not None:
        options = preset.with_explicit(options)
    inputs = analysis_inputs(job)
    requests = [(analysis, options)]
    estimate = ProgressEstimate(progress.start(EVERYTHING), estimate_run_seconds(requests, inputs))
    report = run_all(
        requests, inputs, progress=progress.start, cache_results=True, progress_estimate=estimate, raise_refusals=True
    )
    result = report.results()[0]
    if preset is not None:
        result = with_published(result, preset, request.options)
    write_checked_json(folder / RESULT_FILE, result.to_json())


def analysis_inputs(job: JobRecord) -> Any:
    """The inputs of an analysis, as `bertology.run` makes them."""
    from bertology.analyses.run import RunInputs

    encoder, against, corpus = load_inputs(job)
    if job.request.limit is not None:
        corpus = corpus[: job.request.limit]
    return RunInputs(corpus=corpus, encoder=encoder, against=against, store=Path(job.store))


def _claims_arguments(job: JobRecord, progress: ProgressFile) -> dict[str, Any]:
    encoder, against, corpus = load_inputs(job)
    request: JobRequest = job.request
    return {
        "encoder": encoder,
        "corpus": corpus,
        "against": against,
        "papers": request.papers,
        "full": request.full,
        "limit": request.limit,
        "store": Path(job.store),
        "max_hours": None,
        "progress": progress.start,
    }


def _run_claims(job: JobRecord, folder: Path, progress: ProgressFile) -> None:
    from bertology.claims.run import claims

    write_checked_json(folder / RESULT_FILE, claims(**_claims_arguments(job, progress)).to_json())


def _run_report(job: JobRecord, folder: Path, progress: ProgressFile) -> None:
    from bertology.views.report.build import report

    write_report_digest(report(**_claims_arguments(job, progress), output=folder / "report.html"))


def _record_sites(sites: Callable[[], list[Any]]) -> Callable[[JobRecord, Path, ProgressFile], None]:
    def record_job(job: JobRecord, folder: Path, progress: ProgressFile) -> None:
        from bertology.recording.recorder import record
        from bertology.server.indices import INDEX_CONFIG

        encoder, _, corpus = load_inputs(job)
        callback = progress.start(EVERYTHING)
        recording = record(
            encoder, corpus, sites(), config=INDEX_CONFIG, store=Path(job.store), max_hours=None, progress=callback
        )
        write_checked_json(folder / RESULT_FILE, recording.summary())

    return record_job


def _link_sites() -> list[Any]:
    from bertology.analyses.link_index.site import strongest_links_site

    return [strongest_links_site()]


_RUNNERS: dict[str, Callable[[JobRecord, Path, ProgressFile], None]] = {
    "analysis": _run_analysis,
    "claims": _run_claims,
    "report": _run_report,
    "links": _record_sites(_link_sites),
    "states": _record_sites(lambda: ["hidden.words"]),
}


def _end_with_parent() -> None:
    """End this process soon after its parent has ended, however that ended."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            sleep(0.5)
        os._exit(ORPHANED)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    set_library_defaults()
    sys.exit(run_job(Path(sys.argv[1])))
