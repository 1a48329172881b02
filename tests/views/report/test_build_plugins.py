"""Analyses of plug-ins are in the report with their package; one that fails is named there and does not stop it."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from tests.planted_claims import CLAIMS

from bertology.analyses import registry
from bertology.analyses.attention.entropy import entropy
from bertology.analyses.declaration import Analysis
from bertology.analyses.run import RunInputs
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from bertology.plugins import Plugin
from bertology.views.report.build import run_plugins
from command import bertology as command


def plugins(*values: tuple[str, Analysis | None, str]) -> tuple[Plugin, ...]:
    return tuple(
        Plugin(EntryPoint(name, "a_package:analysis", "bertology.analyses"), value, problem)
        for name, value, problem in values
    )


def inputs(tmp_path: Path) -> RunInputs:
    return RunInputs(corpus=load_corpus("english", limit=3), encoder=load("tiny"), store=tmp_path)


def test_plugged_in_analyses_run_unless_a_claim_has_run_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "plugins", lambda: plugins(("attention/entropy", entropy, "")))
    outcome = run_plugins(inputs(tmp_path), set())
    assert [result.analysis for result in outcome.results] == ["attention/entropy"]
    assert "With the plug-in attention/entropy" in outcome.messages[0]
    assert run_plugins(inputs(tmp_path), {"attention/entropy"}).results == ()


def test_a_plugin_that_fails_is_named_and_the_command_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise ZeroDivisionError("a defect")

    defective = replace(entropy, function=fail)
    monkeypatch.setattr(
        registry, "plugins", lambda: plugins(("attention/a", None, "ImportError: no"), ("attention/b", defective, ""))
    )
    outcome = run_plugins(inputs(tmp_path), set())
    assert outcome.results == ()
    [message], [failure] = outcome.messages, outcome.failures
    assert message.startswith("Left out") and "ImportError: no" in message
    assert failure.startswith("Failed") and "ZeroDivisionError: a defect" in failure
    (tmp_path / "claims.toml").write_text(CLAIMS)
    arguments = (
        "report",
        "tiny",
        "--limit",
        "3",
        "--max-unknown-tokens",
        "1",
        "--claims",
        str(tmp_path / "claims.toml"),
    )
    completed = command(*arguments, "--no-store", "--markdown", "-o", str(tmp_path / "report.md"))
    assert completed.status == 1 and failure in completed.err, completed.err
    assert failure in (tmp_path / "report.md").read_text("utf-8")


def test_without_plugins_nothing_is_run_or_said(tmp_path: Path) -> None:
    outcome = run_plugins(inputs(tmp_path), set())
    assert (outcome.results, outcome.messages, outcome.passes) == ((), (), ())
