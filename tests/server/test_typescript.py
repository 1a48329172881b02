from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from bertology.server import typescript
from bertology.server.api import ENDPOINTS
from bertology.server.typescript import api_types

FILE = Path(__file__).parents[2] / "frontend" / "src" / "api.ts"


def test_the_types_of_the_front_end_are_those_of_the_server() -> None:
    assert FILE.read_text("utf-8") == api_types(), "run: python -m bertology.server.typescript frontend/src"


def test_the_program_writes_the_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["typescript", str(tmp_path)])
    runpy.run_path(typescript.__file__, run_name="__main__")
    assert (tmp_path / "api.ts").read_text("utf-8") == api_types()


def test_requests_may_leave_out_defaults_and_answers_have_all_fields() -> None:
    text = api_types()
    request = text.partition("export interface LiveRequest {")[2].partition("}")[0]
    answer = text.partition("export interface LiveAnswer {")[2].partition("}")[0]
    assert "text?: string;" in request and 'quantities?: ("attention" | "norm" | "gradient")[];' in request
    assert "?" not in answer and "run: ModelRun;" in answer and "rollout: QuantisedRows | null;" in answer
    assert 'import type { HeadLabel, HeadMeasure, ModelRun, QuantisedRows } from "./payload";' in text
    assert all(f'"{endpoint.method} api/{endpoint.path}"' in text for endpoint in ENDPOINTS)
    assert "export interface ModelRun " not in text
