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
    ended = bertology("new", "attention/far_away", "-o", str(tmp_path / "plugin"))
    assert ended.status == 0, ended.err
    source = tmp_path / "plugin" / "src"
    # As after `pip install -e`, without pip: the metadata of the package next to its source.
    metadata = source / "bertology_far_away-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: bertology-far_away\nVersion: 0.1.0\n", "utf-8")
    points = "[bertology.analyses]\nattention/far_away = bertology_far_away.analysis:far_away\n"
    (metadata / "entry_points.txt").write_text(points, "utf-8")
    return tmp_path / "plugin"


def python(plugin: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(plugin / "src"), *sys.path])}
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, env=environment, cwd=plugin)


@pytest.mark.slow
def test_the_plugin_runs_beside_the_built_in_analyses(plugin: Path) -> None:
    listed = python(plugin, "-c", PROGRAM, "list", "analyses", "--json")
    assert "attention/far_away" in [row["name"] for row in json.loads(listed.stdout)], listed.stderr
    words = ("run", "attention/far_away", "-m", "tiny", "-c", "english", "--limit", "5", "--json")
    done = python(plugin, "-c", PROGRAM, *words)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["baselines"].keys() == {"uniform attention", "untrained model"}


@pytest.mark.slow
def test_the_plugins_own_test_passes(plugin: Path) -> None:
    done = python(plugin, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
    assert done.returncode == 0, done.stdout + done.stderr


def test_existing_files_are_not_overwritten(plugin: Path) -> None:
    ended = bertology("new", "attention/far_away", "-o", str(plugin))
    assert ended.status == 2 and "not empty" in ended.err


def test_the_entry_point_is_the_packages_own(plugin: Path) -> None:
    import tomllib

    project = tomllib.loads((plugin / "pyproject.toml").read_text("utf-8"))["project"]
    points = project["entry-points"]["bertology.analyses"]
    assert points == {"attention/far_away": "bertology_far_away.analysis:far_away"}
