"""The endpoints of jobs: what can be computed, the queue, and results in every form."""

from __future__ import annotations

import csv
import io
from typing import Literal

from pydantic import BaseModel, Field

from bertology.errors import Refusal
from bertology.results.result import Result
from bertology.server.catalogue import AnalysisAnswer, ClaimAnswer, all_analyses, list_claims
from bertology.server.compute import CheckFunction
from bertology.server.endpoint import CSV, HTML, SVG, TEXT, EmptyRequest, Endpoint
from bertology.server.jobs import JobAnswer, JobRequest
from bertology.server.keep import KeptCommands, job_commands
from bertology.server.texts import RequestModel
from bertology.server.workbench import Workbench


class JobIdRequest(RequestModel):
    """A job by its id."""

    id: str = Field(pattern=r"^[\w-]{1,60}$")


class FigureRequest(JobIdRequest):
    """The figure of a finished analysis, light or dark; text keeps its size whatever the width."""

    theme: Literal["light", "dark"] = "light"
    width_mm: int = Field(default=180, ge=60, le=400)


class JobList(BaseModel):
    """All jobs, newest first."""

    jobs: list[JobAnswer]


class AnalysisList(BaseModel):
    """All analyses."""

    analyses: list[AnalysisAnswer]


class ClaimList(BaseModel):
    """All claims."""

    claims: list[ClaimAnswer]


def _analyses(_bench: Workbench, _request: EmptyRequest, _check: CheckFunction) -> AnalysisList:
    return AnalysisList(analyses=all_analyses())


def _claims(_bench: Workbench, _request: EmptyRequest, _check: CheckFunction) -> ClaimList:
    return ClaimList(claims=list_claims())


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


JOB_ENDPOINTS = (
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
)  # fmt: skip
