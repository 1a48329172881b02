"""A plug-in written by `bertology new` is found, runs, and passes the test it came with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from command import bertology

PROGRAM = "from bertology.cli.main import main; main()"


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    completed = bertology("new", "attention/far_away", "-o", str(tmp_path / "plugin"))
    assert completed.status == 0, completed.err
    source = tmp_path / "plugin" / "src"
    # As after `pip install -e`, without pip: the metadata of the package next to its source.
    metadata = source / "bertology_far_away-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: bertology-far_away\nVersion: 0.1.0\n", "utf-8")
    points = "[bertology.analyses]\nattention/far_away = bertology_far_away.analysis:far_away\n"
    (metadata / "entry_points.txt").write_text(points, "utf-8")
    return tmp_path / "plugin"


def python(plugin: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(plugin / "src"), *sys.path])}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, cwd=plugin)


@pytest.mark.slow
def test_the_plugin_is_listed_and_runs_like_a_built_in_analysis(plugin: Path) -> None:
    listed = python(plugin, "-c", PROGRAM, "list", "analyses", "--json")
    assert "attention/far_away" in [row["name"] for row in json.loads(listed.stdout)], listed.stderr
    arguments = ("run", "attention/far_away", "-m", "tiny", "-c", "english", "--limit", "5", "--json")
    completed = python(plugin, "-c", PROGRAM, *arguments)
    assert completed.returncode == 0, completed.stderr
    assert json.loads(completed.stdout)["baselines"].keys() == {"uniform attention", "untrained model"}


@pytest.mark.slow
def test_the_generated_test_of_the_plugin_passes(plugin: Path) -> None:
    completed = python(plugin, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
    assert completed.returncode == 0, completed.stdout + completed.stderr


def test_existing_files_are_not_overwritten(plugin: Path) -> None:
    completed = bertology("new", "attention/far_away", "-o", str(plugin))
    assert completed.status == 2 and "not empty" in completed.err


def test_the_entry_point_names_the_analysis_of_the_package(plugin: Path) -> None:
    import tomllib

    project = tomllib.loads((plugin / "pyproject.toml").read_text("utf-8"))["project"]
    points = project["entry-points"]["bertology.analyses"]
    assert points == {"attention/far_away": "bertology_far_away.analysis:far_away"}
