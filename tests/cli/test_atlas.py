"""`bertology atlas`: what it hands to `bertology.atlas`, what it prints, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bertology.atlas import build
from bertology.atlas.content import Atlas
from bertology.atlas.judged_model import NotJudged
from command import bertology
from planted_atlas import planted_atlas


def test_models_and_options_are_handed_on_and_what_failed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[list[str], dict[str, Any]]] = []
    failed = NotJudged(name="odd", reason="There is no model 'odd'.")

    def judge(models: list[str], corpus: Any, **arguments: Any) -> Atlas:
        calls.append((models, {**arguments, "examples": len(corpus)}))
        content = planted_atlas({"mini": {"x": 0.5}, "random:mini": {"x": -0.5}}, untrained=["random:mini"])
        return replace(content, not_judged=(failed,), messages=("mini was given more than once; it is judged once.",))

    monkeypatch.setattr(build, "atlas", judge)
    file = str(tmp_path / "atlas.html")
    words = (
        "mini",
        "random:mini",
        "odd",
        "mini",
        "--paper",
        "clark2019",
        "--limit",
        "7",
        "--engine",
        "local:2",
        "--without",
        "probes/pipeline",
        "-o",
        file,
    )
    result = bertology("atlas", *words)
    [(models, arguments)] = calls
    assert models == ["mini", "random:mini", "odd", "mini"] and arguments["examples"] == 7
    assert arguments["papers"] == ["clark2019"] and arguments["engine"] == "local:2" and arguments["limit"] == 7
    assert arguments["without"] == ["probes/pipeline"]
    assert (result.status, result.out) == (0, f"{file}\n")
    assert "odd could not be judged. There is no model" in result.err and "judged once" in result.err
    assert "2 models, 1 finding: " in result.err and "1 of 1 differences between two models remain" in result.err


def test_mistakes_are_refused_in_a_paragraph(tmp_path: Path) -> None:
    for words, message in (
        (("mini", "--json", "-o", str(tmp_path / "a.html")), "does not end in .json"),
        (("mini", "-o", str(tmp_path / "a.txt")), "says no format"),
        (("no/such/model/pattern-*",), "No directory matches"),
    ):
        result = bertology("atlas", *words)
        assert result.status == 2 and message in result.err and "Traceback" not in result.err
