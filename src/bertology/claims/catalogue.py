"""All claims: those of this package, of a file that a person names with --claims, and of plug-ins.

A claim is one `[[claim]]` of a TOML file named after its paper. Plug-ins are packages with an entry point in the group
`bertology.claims` that is called like the paper and names the Python package that holds `PAPER.toml`.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from pydantic import ValidationError

from bertology.claims.claim import Claim
from bertology.errors import Refusal
from bertology.input_files import read_bytes, unreadable
from bertology.plugins import Plugin, PluginError, load_plugin

DIRECTORY = Path(__file__).parent
ENTRY_POINT_GROUP = "bertology.claims"


@cache
def all_claims() -> tuple[Claim, ...]:
    """All claims, of this package and of plug-ins; a claim's paper is the name of its file.

    A plug-in that cannot be loaded is left out with a warning.
    """
    claims = list(_builtin_claims())
    for plugin in claim_plugins():
        if plugin.problem:
            plugin.warn()
        else:
            claims += plugin.value
    return tuple(claims)


@cache
def claim_plugins() -> tuple[Plugin, ...]:
    """The claims of installed plug-ins, with the problems of those that cannot be loaded."""
    return tuple(load_plugin(entry, _load_plugged_in) for entry in entry_points(group=ENTRY_POINT_GROUP))


def read_claims(file: str | Path) -> tuple[Claim, ...]:
    """The claims of a person's own TOML file; every mistake in it is refused.

    Claims of a paper that citations.py does not have name it in full as `citation`, at the top of the file.
    """
    file = Path(file)
    try:
        content = read_bytes(file).decode("utf-8")
    except UnicodeDecodeError as error:
        raise unreadable(file, error, "a TOML file with claims") from error
    claims = _parse_claims(content, file.stem, str(file))
    taken = {claim.id for claim in all_claims()} & {claim.id for claim in claims}
    if taken:
        raise Refusal(
            f"{file} has claims with the id of another claim: {', '.join(sorted(taken))}",
            "ids that no claim of `bertology list claims` has",
            "Choose other ids",
        )
    return claims


@cache
def _builtin_claims() -> tuple[Claim, ...]:
    files = sorted(DIRECTORY.glob("*.toml"))
    claims = [claim for file in files for claim in _parse_claims(file.read_text("utf-8"), file.stem, file.name)]
    _refuse_repeated_ids(claims, "the claims of this package")
    return tuple(claims)


def _load_plugged_in(entry: EntryPoint) -> tuple[Claim, ...]:
    file = resources.files(entry.value) / f"{entry.name}.toml"
    if not file.is_file():
        raise PluginError(f"the package {entry.value} has no file {entry.name}.toml")
    claims = _parse_claims(file.read_text("utf-8"), entry.name, f"{entry.name}.toml")
    taken = {claim.id for claim in _builtin_claims()} & {claim.id for claim in claims}
    if taken:
        raise PluginError(f"built-in claims have the ids {', '.join(sorted(taken))}")
    return claims


def _parse_claims(text: str, paper: str, location: str) -> tuple[Claim, ...]:
    """The claims of a TOML text; every mistake in it is refused with the claim in which it is."""
    example = "`bertology new claim NAME` writes a file with a claim and its test"
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Refusal(f"This is not TOML: {reason}", "a TOML file with claims", example, location=location) from error
    entries = content.pop("claim", None)
    shared = {name: content.pop(name) for name in ("citation", "published_model") if name in content}
    if (
        content
        or not all(isinstance(text, str) for text in shared.values())
        or not isinstance(entries, list)
        or not entries
        or not all(isinstance(entry, dict) for entry in entries)
    ):
        raise Refusal(
            f"This file has {', '.join(sorted(content)) or 'no claim'}",
            "`citation`, `published_model`, and one or more `[[claim]]`",
            example,
            location=location,
        )
    claims: list[Claim] = []
    for number, entry in enumerate(entries, start=1):
        try:
            claims.append(Claim.model_validate({"paper": paper, **shared, **entry}))
        except ValidationError as error:
            name = entry.get("id", f"number {number}")
            raise Refusal(
                f"The claim {name} is malformed: {_describe_validation(error)}",
                "the fields of a claim",
                f"Correct it; {example}",
                location=location,
            ) from error
    _refuse_repeated_ids(claims, location)
    return tuple(claims)


def _describe_validation(error: ValidationError) -> str:
    details = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(
        f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" if detail["loc"] else detail["msg"]
        for detail in details[:3]
    )


def _refuse_repeated_ids(claims: list[Claim], location: str) -> None:
    ids = [claim.id for claim in claims]
    repeated = sorted({id for id in ids if ids.count(id) > 1})
    if repeated:
        raise Refusal(
            f"Two claims have the id {repeated[0]}", "an id for each claim", "Choose another id", location=location
        )
