"""The wheel and the source distribution: what they contain, and that the installed package works on its own."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import bertology

ROOT = Path(__file__).parents[1]
pytest.importorskip("hatchling", reason="hatchling builds the package; install the `dev` extra")


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(directory)], cwd=ROOT, check=True)
    (wheel,), (source,) = directory.glob("*.whl"), directory.glob("*.tar.gz")
    return {"wheel": wheel, "source": source}


def members(distribution: Path) -> list[str]:
    if distribution.suffix == ".whl":
        return zipfile.ZipFile(distribution).namelist()
    with tarfile.open(distribution) as archive:
        return [name.partition("/")[2] for name in archive.getnames()]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wheel", "source"])
def test_distributions_leave_out_what_has_no_known_licence(distributions: dict[str, Path], kind: str) -> None:
    names = members(distributions[kind])
    assert any("encoder/models/mini/" in name for name in names)
    assert not [name for name in names if "mini-sentiment" in name or "__pycache__" in name or "node_modules" in name]


@pytest.mark.slow
def test_every_bundled_file_that_is_not_code_has_its_licence_in_the_notice(distributions: dict[str, Path]) -> None:
    code = (".py", ".toml", ".html", ".css", ".txt", ".typed", ".md")
    with zipfile.ZipFile(distributions["wheel"]) as wheel:
        (notice,) = (wheel.read(name).decode() for name in wheel.namelist() if name.endswith("licenses/NOTICE"))
        data = [name for name in wheel.namelist() if not name.endswith(code) and ".dist-info/" not in name]
    assert data
    for name in data:
        directory, _, file = name.rpartition("/")
        assert directory.split("/")[-1] in notice or file in notice, f"NOTICE does not say where {name} comes from"


@pytest.mark.slow
def test_the_installed_wheel_runs_without_the_repository(distributions: dict[str, Path], tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--python", str(python)]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", str(distributions["wheel"])], check=True)
    # Dependencies come from this environment, but not its editable bertology: PYTHONPATH ignores .pth files.
    environment = {**os.environ, "PYTHONPATH": sysconfig.get_path("purelib"), "OMP_NUM_THREADS": "1"}

    def run(*arguments: str) -> str:
        arguments = (str(python), *arguments)
        return subprocess.run(
            arguments, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
        ).stdout

    assert str(tmp_path) in run("-c", "import bertology; print(bertology.__file__)")
    command = str(tmp_path / "venv" / "bin" / "bertology")
    models = run(command, "list", "models")
    assert "mini-pairs" in models and "mini-sentiment" not in models
    assert "uniform attention" in run(
        command, "run", "attention/entropy", "--model", "tiny", "--limit", "3", "--no-store"
    )
    run(command, "view", "A short text.", "--model", "tiny", "-o", "view.html")
    assert (tmp_path / "view.html").stat().st_size > 50_000


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert bertology.__version__ == project
    assert f"\nversion: {project}\n" in citation
