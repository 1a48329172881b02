"""`bertology store`: list what the store keeps, and delete chosen parts of it."""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertology.checked_files import read_checked_json
from bertology.cli import options
from bertology.errors import Refusal, count_noun
from bertology.store_paths import local_folder

if TYPE_CHECKING:
    from bertology.recording.store import RecordingFolder

HELP = "List what the store keeps (recordings, results, finished parts), its size, or delete parts of it."

StoreAction = Literal["list", "size", "prune"]
EntryKind = Literal["recording", "result", "part"]

ENTRY_NAME = re.compile(r"[0-9a-f]{24}")
EARLIER_FEATURES = "features"
"""A folder of earlier versions, which is still listed and pruned."""
CACHE_SUFFIXES = {".json", ".npz"}
UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
PERIODS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


@dataclass(frozen=True)
class StoreEntry:
    """A recording, a result or a finished part of an analysis in the store.

    `path` is relative to the store. `content` are the sites of a recording, or the analysis or function of a cached
    value. `age` is in seconds since something was last written to it. `problem`: why it cannot be deleted or read.
    """

    path: str
    kind: EntryKind
    models: tuple[str, ...]
    corpus: str
    content: tuple[str, ...]
    bytes: int
    age: float
    is_deletable: bool = True
    problem: str = ""


def store_command(
    action: Annotated[StoreAction, typer.Argument(help="What to do.")] = "list",
    older_than: Annotated[
        str | None, typer.Option(metavar="AGE", help="Prune what was last written longer ago, such as 30d, 12h or 2w.")
    ] = None,
    larger_than: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Prune entries larger than this, such as 1GB or 500MB.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="MODEL", help="Only entries of the model of this name.")
    ] = None,
    corpus: Annotated[
        str | None, typer.Option("--corpus", "-c", metavar="CORPUS", help="Only entries of the corpus of this name.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what `prune` would delete, and delete nothing.")] = (
        False
    ),
    store: Annotated[
        str | None, typer.Option(metavar="DIR", help="Directory of the store (default: the user's cache directory).")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """List, measure or prune the store; conditions of `prune` are combined by "and"."""
    directory = options.store_directory(store, no_store=False)
    assert directory is not None, "there is a default store"
    root = local_folder(directory, "`bertology store`")
    seconds, size = _parse_age(older_than), _parse_size(larger_than)
    if action != "prune" and (dry_run or older_than or larger_than):
        raise Refusal(
            f"`store {action}` was given an option of `store prune`",
            "--older-than, --larger-than and --dry-run with prune only",
            "Remove it, or write `bertology store prune`",
        )
    if action == "prune" and seconds is None and size is None and model is None and corpus is None:
        raise Refusal(
            "Nothing says what to delete",
            "at least one of --older-than, --larger-than, --model and --corpus",
            "Add one; `bertology store prune --older-than 0d` deletes everything",
        )
    entries = [
        entry
        for entry in store_entries(root)
        if (model is None or model in entry.models)
        and (corpus is None or corpus == entry.corpus)
        and (seconds is None or entry.age > seconds)
        and (size is None or entry.bytes > size)
    ]
    foreign = foreign_files(root)
    report: dict[str, Any] = {"store": str(root), "foreign": foreign}
    match action:
        case "list":
            report["entries"] = [asdict(entry) for entry in entries]
            lines = _list_lines(entries)
        case "size":
            report |= {"bytes": sum(entry.bytes for entry in entries), "totals": totals(entries)}
            lines = _size_lines(report)
        case "prune":
            report |= prune_store(root, entries, dry_run=dry_run)
            lines = _prune_lines(report)
    if as_json:
        typer.echo(json.dumps(report, ensure_ascii=False))
    else:
        for line in lines:
            typer.echo(line)
        options.print_message(f"Store: {root}")
        if foreign:
            options.print_message(
                f"Left alone, not written by bertology: {', '.join(foreign[:5])}{' ...' if len(foreign) > 5 else ''}"
            )
        if action == "prune" and (model or corpus):
            unnamed = sum(not entry.models for entry in store_entries(root))
            if unnamed:
                options.print_message(
                    f"{count_noun(unnamed, 'finished parts')} of analyses do not name a model or corpus; they are "
                    "pruned by --older-than and --larger-than only."
                )
    if report.get("failed"):
        raise typer.Exit(1)


def store_entries(root: Path) -> list[StoreEntry]:
    """All entries of a store, the largest first; none if there is no store."""
    entries = [entry for folder in _folders(root) if (entry := _recording_entry(folder, root)) is not None]
    entries += [_cache_entry(file, root) for file in _cache_files(root)]
    return sorted(entries, key=lambda entry: (-entry.bytes, entry.path))


def foreign_files(root: Path) -> list[str]:
    """What lies in the store and was not written by bertology, relative to the store."""
    from bertology.atomic_files import is_partial
    from bertology.recording.store import WORKBENCH_FOLDER

    if not root.is_dir():
        return []
    known = {root / WORKBENCH_FOLDER, *_folders(root), *_cache_files(root), *(root / name for name in _cache_folders())}
    others = [path for path in root.iterdir() if path not in known]
    for folder in (root / name for name in _cache_folders()):
        others += [path for path in folder.iterdir() if path not in known] if folder.is_dir() else []
    others += [file for folder in _folders(root) for file in _unknown_files(folder)]
    return sorted(str(path.relative_to(root)) for path in others if not is_partial(path))


def totals(entries: Iterable[StoreEntry]) -> dict[str, dict[str, dict[str, int]]]:
    """Number and bytes of the entries by kind, by model and by corpus."""
    keys: Mapping[str, Callable[[StoreEntry], str]] = {
        "kind": lambda entry: entry.kind,
        "model": lambda entry: " and ".join(entry.models),
        "corpus": lambda entry: entry.corpus,
    }
    sums: dict[str, dict[str, dict[str, int]]] = {}
    for name, key in keys.items():
        groups: defaultdict[str, dict[str, int]] = defaultdict(lambda: {"entries": 0, "bytes": 0})
        for entry in entries:
            groups[key(entry)]["entries"] += 1
            groups[key(entry)]["bytes"] += entry.bytes
        sums[name] = dict(sorted(groups.items(), key=lambda group: -group[1]["bytes"]))
    return sums


def prune_store(root: Path, entries: Iterable[StoreEntry], *, dry_run: bool) -> dict[str, Any]:
    """Delete entries, each at once; what cannot be deleted is kept and named with the reason."""
    from bertology.atomic_files import remove_folder, remove_stale_partials

    deleted: list[StoreEntry] = []
    kept: list[dict[str, str]] = []
    failed: list[dict[str, str]] = []
    for entry in entries:
        if not entry.is_deletable:
            kept.append({"path": entry.path, "reason": entry.problem})
            continue
        try:
            if not dry_run:
                path = root / entry.path
                remove_folder(path) if path.is_dir() else path.unlink()
        except OSError as error:
            failed.append({"path": entry.path, "reason": error.strerror or str(error)})
        else:
            deleted.append(entry)
    if not dry_run and root.is_dir():
        remove_stale_partials(root)
    return {
        "dry_run": dry_run,
        "deleted": [asdict(entry) for entry in deleted],
        "bytes": sum(entry.bytes for entry in deleted),
        "kept": kept,
        "failed": failed,
    }


def format_bytes(n: float) -> str:
    """A number of bytes in the unit that suits it: 3 B, 1.5 kB, 2.3 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if n < 1000:
            return f"{n:.0f} B" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1000
    return f"{n:.1f} TB"


def _folders(root: Path) -> list[Path]:
    if not root.is_dir():
        return []
    return sorted(
        path for path in root.iterdir() if ENTRY_NAME.fullmatch(path.name) and path.is_dir() and not path.is_symlink()
    )


def _cache_folders() -> tuple[str, ...]:
    from bertology.analyses.cache import FOLDER

    return FOLDER, EARLIER_FEATURES


def _cache_files(root: Path) -> list[Path]:
    folders = [root / name for name in _cache_folders()]
    return sorted(
        file
        for folder in folders
        if folder.is_dir()
        for file in folder.iterdir()
        if ENTRY_NAME.fullmatch(file.stem)
        and file.suffix in CACHE_SUFFIXES
        and file.is_file()
        and not file.is_symlink()
    )


def _recording_entry(folder: Path, root: Path) -> StoreEntry | None:
    """The entry of a recording's folder; None if it was deleted in the meantime."""
    from bertology.atomic_files import is_being_written
    from bertology.recording.store import RecordingFolder

    try:
        statuses = {path: path.lstat() for path in (folder, *folder.rglob("*"))}
    except FileNotFoundError:
        return None
    unknown = _unknown_files(folder)
    problem, is_deletable = "", True
    if unknown:
        names = ", ".join(str(path.relative_to(folder)) for path in unknown[:3])
        problem, is_deletable = f"it holds files that bertology did not write: {names}", False
    elif any(is_being_written(path) for path in statuses):
        problem, is_deletable = "a running process writes it", False
    model, corpus, sites = "", "", ()
    try:
        model, corpus, sites = _describe_recording(RecordingFolder(folder))
    except Refusal as refusal:
        problem = problem or refusal.problem
    return StoreEntry(
        path=str(folder.relative_to(root)),
        kind="recording",
        models=(model,) if model else (),
        corpus=corpus,
        content=sites,
        bytes=sum(status.st_size for path, status in statuses.items() if not path.is_dir()),
        age=time.time() - max(status.st_mtime for status in statuses.values()),
        is_deletable=is_deletable,
        problem=problem,
    )


def _describe_recording(folder: RecordingFolder) -> tuple[str, str, tuple[str, ...]]:
    manifest = folder.manifest()
    if manifest is None:
        return "", "", ()
    return manifest["encoder"]["name"], manifest["corpus"]["name"], tuple(folder.sites())


def _unknown_files(folder: Path) -> list[Path]:
    """The files and folders of a recording's folder that are not part of a recording."""
    from bertology.atomic_files import is_partial
    from bertology.recording.manifest import CORPUS_FILE, INPUTS_FILE
    from bertology.recording.shards import SHARD_NAME
    from bertology.recording.store import MANIFEST

    unknown: list[Path] = []
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink():
            files = list(path.iterdir())
            unknown += [
                file
                for file in files
                if not (SHARD_NAME.fullmatch(file.name) or is_partial(file)) or file.is_dir() or file.is_symlink()
            ]
        elif path.name not in {MANIFEST, CORPUS_FILE, INPUTS_FILE} and not is_partial(path):
            unknown.append(path)
    return unknown


def _cache_entry(file: Path, root: Path) -> StoreEntry:
    """The entry of a cached value: a whole result names its models and corpus, a finished part its function."""
    kind: EntryKind = "part"
    models: tuple[str, ...] = ()
    corpus, content, problem = "", (), ""
    described = file.with_suffix(".json")  # arrays lie beside the result that they belong to
    if described.is_file():
        try:
            stored = read_checked_json(described)
            function, value = stored["key"]["function"], stored["value"]
            content = (function,)
            if isinstance(value, dict) and "result" in value:
                result = value["result"]
                kind, content = "result", (result["analysis"],)
                models, corpus = _result_inputs(result["inputs"])
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            problem = "it is damaged, or of an older version; nothing reads it"
    status = file.lstat()
    return StoreEntry(
        path=str(file.relative_to(root)),
        kind=kind,
        models=models,
        corpus=corpus,
        content=content,
        bytes=status.st_size,
        age=time.time() - status.st_mtime,
        problem=problem,
    )


def _result_inputs(inputs: Mapping[str, Any]) -> tuple[tuple[str, ...], str]:
    summaries = [summary for role, summary in inputs.items() if role != "untrained" and isinstance(summary, dict)]
    models = dict.fromkeys(summary["model"]["name"] for summary in summaries if "model" in summary)
    corpora = [summary["corpus"]["name"] for summary in summaries if "corpus" in summary]
    return tuple(models), corpora[0] if corpora else ""


def _list_lines(entries: list[StoreEntry]) -> list[str]:
    header = ("kind", "model", "corpus", "size", "age", "content", "path")
    rows = [
        (
            entry.kind,
            " and ".join(entry.models) or "-",
            entry.corpus or "-",
            format_bytes(entry.bytes),
            _format_age(entry.age),
            _shorten(entry.content),
            entry.path + (f" ({entry.problem})" if entry.problem else ""),
        )
        for entry in entries
    ]
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header) - 1)]
    return ["  ".join([*map(str.ljust, row, widths), row[-1]]).rstrip() for row in (header, *rows)]


def _size_lines(report: Mapping[str, Any]) -> list[str]:
    lines = [f"{format_bytes(report['bytes'])} in all"]
    for name, groups in report["totals"].items():
        for group, total in groups.items():
            count = count_noun(total["entries"], "entries")
            lines.append(f"{format_bytes(total['bytes']):>10}  {name} {group or '(not named)'} ({count})")
    return lines


def _prune_lines(report: Mapping[str, Any]) -> list[str]:
    verb = "would delete" if report["dry_run"] else "deleted"
    deleted = report["deleted"]
    lines = [f"{verb} {entry['path']} ({entry['kind']}, {format_bytes(entry['bytes'])})" for entry in deleted]
    lines += [f"kept {entry['path']}: {entry['reason']}" for entry in report["kept"]]
    lines += [f"could not delete {entry['path']}: {entry['reason']}" for entry in report["failed"]]
    return [*lines, f"{verb} {count_noun(len(deleted), 'entries')}, {format_bytes(report['bytes'])}"]


def _shorten(content: tuple[str, ...]) -> str:
    text = ", ".join(content[:2]) or "-"
    text = text.removeprefix("bertology.analyses.")
    return f"{text} and {len(content) - 2} more" if len(content) > 2 else text


def _format_age(seconds: float) -> str:
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f}{unit}"
    return f"{max(0, seconds):.0f}s"


def _parse_age(text: str | None) -> float | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text.strip())
    if match is None:
        raise Refusal(f"{text!r} is not an age", "a number with s, m, h, d or w", "Write for example --older-than 30d")
    return float(match[1]) * PERIODS[match[2]]


def _parse_size(text: str | None) -> float | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT]?I?B)", text.strip().upper())
    if match is None or match[2] not in UNITS:
        raise Refusal(
            f"{text!r} is not a size", "a number with B, kB, MB, GB, TB, or KiB, MiB, GiB", "Write --larger-than 1GB"
        )
    return float(match[1]) * UNITS[match[2]]
