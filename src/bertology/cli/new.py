"""`bertology new`: a plug-in package with one analysis, its site and its test, ready to install and run."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from bertology.analyses import registry
from bertology.errors import Refusal

HELP = "Start a plug-in package with one analysis of your own, its test included."


def new(
    name: Annotated[str, typer.Argument(help="The analysis's name, as group/name, for example attention/commas.")],
    folder: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Where (default: bertology-NAME here).")
    ] = None,
) -> None:
    """Write the package and say how to go on."""
    if not re.fullmatch(r"[a-z][a-z_]*/[a-z][a-z_]*", name):
        raise Refusal(
            f"{name!r} is no name for an analysis",
            "group/name in lower-case letters and underscores, for example attention/commas",
            "Choose such a name",
        )
    if name in registry.names():
        raise Refusal(f"There is an analysis called {name} already", "a name of your own", "Choose another")
    package = name.split("/")[1]
    target = folder or Path(f"bertology-{package.replace('_', '-')}")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise Refusal(f"{target} already exists and is not empty", "a new folder", "Choose another with -o")
    templates = resources.files("bertology.cli") / "template"
    written = {
        "pyproject.toml": target / "pyproject.toml",
        "analysis.py.txt": target / "src" / f"bertology_{package}" / "analysis.py",
        "init.py.txt": target / "src" / f"bertology_{package}" / "__init__.py",
        "test_analysis.py.txt": target / "tests" / "test_analysis.py",
    }
    for template, file in written.items():
        text = (templates / template).read_text("utf-8")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("NAME", name).replace("PACKAGE", package), "utf-8")
    typer.echo(str(target))
    typer.echo(f"Next: pip install -e {target}, then bertology run {name}", err=True)
