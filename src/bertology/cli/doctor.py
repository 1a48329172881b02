"""`bertology doctor`: check the installation, and run one small analysis whose number is known."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from bertology.cli import options
from bertology.cli.list_command import describe_plugin, plugin_rows
from bertology.cli.store import format_bytes
from bertology.errors import ExplainedError
from bertology.lazy import torch
from bertology.store_paths import local_folder

HELP = "Check the installation: versions, devices, store, extras, plug-ins, and a small run with a known number."

EXTRAS = {
    "frames": "results as pandas, polars and Arrow tables",
    "datasets": "corpora from Hugging Face datasets",
    "figures": "figures as PNG and PDF (SVG and HTML need nothing)",
    "notebook": "the attention view as a notebook widget",
    "ray": "workers of a Ray cluster, `--engine ray`",
    "remote": "stores behind addresses such as s3://bucket/folder",
    "serve": "the workbench, `bertology serve`",
}
"""What each optional extra gives to a user."""
DEVELOPMENT_EXTRAS = {"dev", "docs"}

RUN_ANALYSIS, RUN_MODEL, RUN_CORPUS, RUN_LIMIT = "attention/entropy", "mini", "english", 5
EXPECTED_ENTROPY = 2.10549
TOLERANCE = 1e-3
"""Largest difference of the mean entropy, in nats: other kernels and libraries change the last digits only."""

CheckState = Literal["ok", "missing", "broken"]


@dataclass(frozen=True)
class Check:
    """One thing that was checked; `missing` is optional, `broken` is not."""

    name: str
    state: CheckState
    description: str
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


def doctor_command(
    store: Annotated[
        str | None, typer.Option(metavar="DIR", help="Directory of the store (default: the user's cache directory).")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Print every check; exit status 1 if something is broken."""
    directory = options.store_directory(store, no_store=False)
    assert directory is not None, "there is a default store"
    checks = list(run_checks(local_folder(directory, "`bertology doctor`")))
    is_broken = any(check.state == "broken" for check in checks)
    if as_json:
        typer.echo(json.dumps({"ok": not is_broken, "checks": [asdict(c) for c in checks]}, ensure_ascii=False))
    else:
        width = max(len(check.name) for check in checks)
        for check in checks:
            typer.echo(f"{check.state:<8} {check.name:<{width}}  {check.description}")
    if is_broken:
        raise typer.Exit(1)


def run_checks(store: Path | None = None) -> Iterator[Check]:
    """All checks in order; what fails in any way is a check that is broken."""
    yield Check("python", "ok", f"{sys.version.split()[0]} at {sys.executable}", {"version": sys.version.split()[0]})
    yield from version_checks()
    yield _guarded("devices", check_devices)
    yield _guarded("store", lambda: check_store(store))
    yield from extra_checks()
    yield _guarded("plug-ins", check_plugins)
    yield _guarded("small run", check_small_run)


def version_checks() -> Iterator[Check]:
    """The version of bertology and of every library it needs, against the range that it declares."""
    yield Check("bertology", "ok", metadata.version("bertology"), {"version": metadata.version("bertology")})
    for requirement in _requirements():
        if requirement.marker is None:
            yield _library_check(requirement)


def extra_checks() -> Iterator[Check]:
    """Every optional extra: installed, or what is missing and how to get it."""
    for extra, purpose in EXTRAS.items():
        needed = [r for r in _requirements() if r.marker is not None and r.marker.evaluate({"extra": extra})]
        problems = {r.name: problem for r in needed if (problem := _library_problem(r))}
        facts = {"extra": extra, "purpose": purpose, "problems": problems}
        if not problems:
            yield Check(f"extra {extra}", "ok", purpose, facts)
        else:
            remedy = f"pip install 'bertology[{extra}]'"
            yield Check(f"extra {extra}", "missing", f"{purpose}: {', '.join(problems.values())}; {remedy}", facts)


def check_devices() -> Check:
    """The devices that models can run on."""
    devices = {"cpu": f"{torch.get_num_threads()} threads"}
    devices |= {f"cuda:{k}": torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count())}
    if torch.backends.mps.is_available():
        devices["mps"] = "Apple GPU"
    return Check("devices", "ok", ", ".join(f"{name} ({text})" for name, text in devices.items()), {"devices": devices})


def check_store(store: Path | None) -> Check:
    """Where the store is, how large it is, and whether it can be written."""
    from bertology.atomic_files import partial_file
    from bertology.cli.store import store_entries
    from bertology.recording.store import default_root

    root = store or default_root()
    with partial_file(root, "doctor") as (stream, _):
        stream.write(b"written")
    n_bytes = sum(entry.bytes for entry in store_entries(root))
    free = shutil.disk_usage(root).free
    return Check(
        "store",
        "ok",
        f"{root}: {format_bytes(n_bytes)}, {format_bytes(free)} free, can be written",
        {"path": str(root), "bytes": n_bytes, "free_bytes": free},
    )


def check_plugins() -> Check:
    """What plug-ins are installed, and which of them cannot be loaded."""
    rows = plugin_rows()
    state: CheckState = "broken" if any(row["problem"] for _, row in rows) else "ok"
    description = "; ".join(f"{name}, {describe_plugin(row)}" for name, row in rows) or "none installed"
    return Check("plug-ins", state, description, {"plugins": [{"name": name, **row} for name, row in rows]})


def check_small_run() -> Check:
    """The mean entropy of a built-in model's heads on a few sentences, against its known value, on every device."""
    values = {device: _small_run(device) for device in _devices()}
    differences = {device: abs(value - EXPECTED_ENTROPY) for device, value in values.items()}
    state: CheckState = "broken" if max(differences.values()) > TOLERANCE else "ok"
    measured = ", ".join(f"{value:.4f} on {device}" for device, value in values.items())
    what = f"{RUN_ANALYSIS} of {RUN_MODEL} on {RUN_LIMIT} sentences of {RUN_CORPUS}"
    return Check(
        "small run",
        state,
        f"{what}: {measured}; expected {EXPECTED_ENTROPY:.4f}",
        {"values": values, "expected": EXPECTED_ENTROPY, "tolerance": TOLERANCE},
    )


def _devices() -> list[str]:
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    return [device for device, is_available in available.items() if is_available]


def _small_run(device: str) -> float:
    from bertology.analyses import registry
    from bertology.analyses.run import RunInputs, run_analysis
    from bertology.corpus.read import load_corpus
    from bertology.encoder.load import load
    from bertology.results.shapes import HeadGrid

    corpus = load_corpus(RUN_CORPUS, limit=RUN_LIMIT)
    inputs = RunInputs(corpus=corpus, encoder=load(RUN_MODEL, device=device), random_baseline=False)
    grid = run_analysis(registry.get(RUN_ANALYSIS), inputs).data
    assert isinstance(grid, HeadGrid)
    return float(grid.measures["entropy"].value.mean())


def _library_check(requirement: Any) -> Check:
    problem = _library_problem(requirement)
    facts = {"requirement": str(requirement)}
    if problem:
        return Check(requirement.name, "broken", problem, facts)
    version = metadata.version(requirement.name)
    return Check(requirement.name, "ok", f"{version} ({requirement.specifier} needed)", {"version": version, **facts})


def _library_problem(requirement: Any) -> str:
    """Why a requirement is not met; empty if it is."""
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return f"{requirement.name} is not installed"
    is_met = requirement.specifier.contains(version, prereleases=True)
    return "" if is_met else f"{requirement.name} {version} is installed, {requirement.specifier} is needed"


def _requirements() -> list[Any]:
    from packaging.requirements import Requirement

    return [Requirement(text) for text in metadata.requires("bertology") or ()]


def _guarded(name: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except ExplainedError as error:
        return Check(name, "broken", str(error))
    except Exception as error:  # an installation may be broken in any way, and the other checks must still run
        return Check(name, "broken", f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
