"""One path of the API: its request, its answer, and the function that answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from bertology.server.compute import CheckFunction
from bertology.server.texts import RequestModel
from bertology.server.workbench import Workbench

HTML, CSV, TEXT, SVG = "text/html", "text/csv", "text/plain", "image/svg+xml"
Handler = Callable[[Workbench, Any, CheckFunction], Any]


class EmptyRequest(RequestModel):
    """Nothing."""


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
