"""`bertology new`: create a plug-in package with one analysis, reader, model family or claim, and its test."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

import typer

from bertology.errors import Refusal

HELP = "Create a plug-in package with a template analysis, reader, model family or claim, and its test."

PluginKind = Literal["analysis", "reader", "family", "claim"]


@dataclass(frozen=True)
class PluginTemplate:
    """What a plug-in of one kind consists of: its entry point, its files, and what its test needs besides pytest."""

    group: str
    target: str
    files: tuple[tuple[str, str], ...]
    test_packages: tuple[str, ...]
    name_pattern: str
    name_description: str
    summary: str
    next_command: str


TEMPLATES: dict[PluginKind, PluginTemplate] = {
    "analysis": PluginTemplate(
        group="bertology.analyses",
        target="MODULE.analysis:FUNCTION",
        files=(("analysis.py.txt", "src/MODULE/analysis.py"), ("test_analysis.py.txt", "tests/test_analysis.py")),
        test_packages=("numpy", "pytest"),
        name_pattern=r"[a-z][a-z0-9_]*/[a-z][a-z0-9_]*",
        name_description="group/name in lower-case letters, digits and underscores, such as attention/commas",
        summary="The analysis NAME for bertology",
        next_command="bertology run NAME",
    ),
    "reader": PluginTemplate(
        group="bertology.readers",
        target="MODULE.reader:FUNCTION",
        files=(("reader.py.txt", "src/MODULE/reader.py"), ("test_reader.py.txt", "tests/test_reader.py")),
        test_packages=("pytest",),
        name_pattern=r"[a-z][a-z0-9_]*",
        name_description="the name of a format in lower-case letters, digits and underscores, such as tagged",
        summary="A reader of the corpus format NAME for bertology",
        next_command="bertology run attention/entropy --corpus FILE.NAME",
    ),
    "family": PluginTemplate(
        group="bertology.families",
        target="MODULE.family:FAMILY",
        files=(("family.py.txt", "src/MODULE/family.py"), ("test_family.py.txt", "tests/test_family.py")),
        test_packages=("numpy", "pytest", "torch", "transformers"),
        name_pattern=r"[a-z][a-z0-9_-]*",
        name_description="the `model_type` of a config.json, such as ernie",
        summary="The model family NAME for bertology",
        next_command="bertology run attention/entropy --model DIRECTORY",
    ),
    "claim": PluginTemplate(
        group="bertology.claims",
        target="MODULE",
        files=(("claim.toml", "src/MODULE/NAME.toml"), ("test_claim.py.txt", "tests/test_claim.py")),
        test_packages=("numpy", "pytest"),
        name_pattern=r"[a-z][a-z0-9_]*",
        name_description="the key of a paper in lower-case letters, digits and underscores, such as author2026",
        summary="Claims of NAME for bertology",
        next_command="bertology claims --paper NAME",
    ),
}


def new_command(
    kind: Annotated[PluginKind, typer.Argument(help="What to create.")],
    name: Annotated[
        str,
        typer.Argument(
            help="Name of the analysis (group/name, such as attention/commas), of the format, of the model type "
            "(`model_type` of config.json), or of the paper (author2026)."
        ),
    ],
    folder: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Directory to write to (default: bertology-NAME)."),
    ] = None,
) -> None:
    """Write the package and print the next steps."""
    template = TEMPLATES[kind]
    if not re.fullmatch(template.name_pattern, name):
        raise Refusal(
            f"{name!r} is not a valid name of {'an analysis' if kind == 'analysis' else f'a {kind}'}",
            template.name_description,
            "Choose another name",
        )
    if name in _existing_names(kind):
        raise Refusal(f"There is already a built-in or plugged-in {kind} called {name}", "a new name", "Choose another")
    last = name.rpartition("/")[2]
    distribution = f"bertology-{last.replace('_', '-')}"
    target = folder or Path(distribution)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise Refusal(
            f"{target} already exists and is not empty", "a new or empty directory", "Choose another one with -o"
        )
    replacements = _replacements(template, name, last, distribution)
    source = resources.files("bertology.cli") / "template"
    module = replacements["MODULE"]
    texts = {
        "pyproject.toml": (source / "pyproject.toml.txt").read_text("utf-8"),
        f"src/{module}/__init__.py": f'"""{template.summary}."""\n',
        **{path: (source / kind / file).read_text("utf-8") for file, path in template.files},
    }
    for path, text in texts.items():
        file = target / _fill(path, replacements)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_fill(text, replacements), "utf-8")
    typer.echo(str(target))
    steps = f"pip install -e '{target}[test]', pytest {target}, {_fill(template.next_command, replacements)}"
    typer.echo(f"Next: {steps}", err=True)


def _replacements(template: PluginTemplate, name: str, last: str, distribution: str) -> dict[str, str]:
    from bertology import __version__

    identifier = last.replace("-", "_")
    values = {
        "TEST_PACKAGES": ", ".join(f'"{package}"' for package in template.test_packages),
        "DISTRIBUTION": distribution,
        "VERSION": __version__,
        "FUNCTION": identifier,
        "MODULE": f"bertology_{identifier}",
        "CLASS": "".join(part.capitalize() for part in identifier.split("_")),
        "NAME": name,
        "GROUP": template.group,
    }
    return {"SUMMARY": _fill(template.summary, values), "TARGET": _fill(template.target, values), **values}


def _fill(text: str, replacements: dict[str, str]) -> str:
    """A template with its placeholders replaced, all at once: a name may look like another placeholder."""
    return re.sub("|".join(replacements), lambda placeholder: replacements[placeholder.group()], text)


def _existing_names(kind: PluginKind) -> set[str]:
    match kind:
        case "analysis":
            from bertology.analyses import registry

            return set(registry.names())
        case "reader":
            from bertology.corpus.read import readers

            return set(readers())
        case "family":
            from bertology.encoder.families import model_families

            return {model_type for family in model_families() for model_type in family.model_types}
        case "claim":
            from bertology.claims.catalogue import all_claims

            return {claim.paper for claim in all_claims()}
