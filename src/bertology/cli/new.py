"""`bertology new`: create a plug-in package with one analysis, its site and its test."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from bertology.analyses import registry
from bertology.errors import Refusal

HELP = "Create a plug-in package with a template analysis and its test."


def new_command(
    name: Annotated[str, typer.Argument(help="Name of the analysis, as group/name, such as attention/commas.")],
    folder: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Directory to write to (default: bertology-NAME)."),
    ] = None,
) -> None:
    """Write the package and print the next steps."""
    if not re.fullmatch(r"[a-z][a-z_]*/[a-z][a-z_]*", name):
        raise Refusal(
            f"{name!r} is not a valid name of an analysis",
            "group/name in lower-case letters and underscores, for example attention/commas",
            "Choose another name",
        )
    if name in registry.names():
        raise Refusal(f"An analysis called {name} exists already", "a new name", "Choose another name")
    package = name.split("/")[1]
    target = folder or Path(f"bertology-{package.replace('_', '-')}")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise Refusal(
            f"{target} already exists and is not empty", "a new or empty directory", "Choose another one with -o"
        )
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
