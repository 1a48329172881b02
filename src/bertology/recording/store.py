"""A content-addressed store of recordings: no pickle, memory-mapped, atomic shards, nothing recorded twice.

    ROOT/<hash>/manifest.json        encoder, corpus, configuration, plan, counts
    ROOT/<hash>/inputs.jsonl         the tokens of every input and their alignment
    ROOT/<hash>/corpus.jsonl         the examples with their annotations
    ROOT/<hash>/<site>/00007-<digest>.safetensors

`<hash>` is a hash of encoder, corpus and configuration. A shard's name ends in the digest of its bytes; the manifest
holds its own digest and those of the two other files, so that damage is detected before the data are used.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from bertology.atomic_files import DIGEST_LENGTH, atomic_writer, digest_bytes, remove_stale_partials, write_if_absent
from bertology.errors import Refusal
from bertology.input_files import describe_error
from bertology.recording.shards import SHARD_NAME, is_complete
from bertology.recording.stored_description import check_manifest
from bertology.store_paths import StorePath, home_folder

FORMAT_VERSION = 2
MANIFEST = "manifest.json"
T = TypeVar("T")
WORKBENCH_FOLDER = "workbench"
"""The folder of the jobs of `bertology serve` beside the recordings."""


def default_root() -> Path:
    """`$BERTOLOGY_HOME/recordings`, or `recordings` in the user's cache folder."""
    return home_folder() / "recordings"


def recording_hash(key: Mapping[str, Any]) -> str:
    """The folder name of a recording with this encoder, corpus and configuration."""
    canonical = json.dumps({"format": FORMAT_VERSION, **key}, sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:24]


@dataclass(frozen=True)
class RecordingFolder:
    """The folder of one recording."""

    path: StorePath

    def manifest(self) -> dict[str, Any] | None:
        """The manifest, or None if there is no recording; refused if it is damaged or of another format."""
        file = self.path / MANIFEST
        try:
            manifest = json.loads(file.read_text("utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except RecursionError as error:
            raise self._damage_refusal(MANIFEST, "it is nested too deeply") from error
        except PermissionError as error:
            raise Refusal(
                f"No permission to read {self.path}",
                "a readable folder",
                "Choose another one with -o or --store, or change its permissions",
            ) from error
        except (OSError, ValueError) as error:
            raise self._damage_refusal(MANIFEST, str(error)) from error
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT_VERSION:
            raise self._format_refusal(manifest.get("format") if isinstance(manifest, dict) else None)
        if manifest.pop("digest", None) != _digest_json(manifest):
            raise self._damage_refusal(MANIFEST, "its digest does not match")
        try:
            check_manifest(manifest)
        except ValueError as error:
            raise self._damage_refusal(MANIFEST, describe_error(error)) from error
        return manifest

    def write_manifest(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Write the manifest unless another process was first; returns the manifest on disk."""
        content = {**manifest, "digest": _digest_json(manifest)}
        write_if_absent(self.path / MANIFEST, json.dumps(content, ensure_ascii=False).encode())
        written = self.manifest()
        assert written is not None, "the manifest has just been written"
        return written

    def write_lines(self, name: str, values: Iterable[Any]) -> str:
        """Write a JSON-lines file atomically, one line at a time; returns its digest."""
        digest = hashlib.sha256()
        with atomic_writer(self.path / name) as stream:
            for value in values:
                line = json.dumps(value, ensure_ascii=False).encode() + b"\n"
                digest.update(line)
                stream.write(line)
        return digest.hexdigest()[:DIGEST_LENGTH]

    def read_lines(self, name: str, digest: str, parse: Callable[[bytes], T]) -> list[T]:
        """The parsed lines of a file; refused if its bytes do not match the digest, or `parse` raises `ValueError`."""
        try:
            content = (self.path / name).read_bytes()
        except OSError as error:
            raise self._damage_refusal(name, error.strerror or str(error)) from error
        if digest_bytes(content) != digest:
            raise self._damage_refusal(name, "its digest does not match")
        values: list[T] = []
        for number, line in enumerate(content.split(b"\n"), 1):
            try:
                values += [parse(line)] if line else []
            except ValueError as error:
                raise self._damage_refusal(name, f"line {number}: {describe_error(error)}") from error
        return values

    def shards(self, site: str) -> dict[int, StorePath]:
        """The complete shards of a site by index.

        Only file lengths are checked here; the digest is checked when a shard is first read.
        """
        folder = self.path / site
        files: dict[int, StorePath] = {}
        for file in sorted(folder.iterdir()) if folder.is_dir() else ():
            name = SHARD_NAME.fullmatch(file.name)
            if name is not None and is_complete(file):
                files[int(name[1])] = file
        return files

    def remove_leftovers(self, site: str) -> None:
        """Remove partial and incomplete shards from a site's folder; unrelated files stay."""
        folder = self.path / site
        if not isinstance(folder, Path) or not folder.is_dir():
            return  # an object store shows complete files only
        remove_stale_partials(folder)
        for file in folder.iterdir():
            if SHARD_NAME.fullmatch(file.name) and not is_complete(file):
                with suppress(OSError):
                    file.unlink()

    def sites(self) -> list[str]:
        """The sites with at least one shard, complete or not."""
        folders = (path for path in self.path.iterdir() if path.is_dir())
        return sorted(path.name for path in folders if any(SHARD_NAME.fullmatch(file.name) for file in path.iterdir()))

    def _format_refusal(self, version: object) -> Refusal:
        remedy = "Record again into another folder, or delete this one"
        if isinstance(version, int) and not isinstance(version, bool):
            age = "an older" if version < FORMAT_VERSION else "a newer"
            return Refusal(
                f"{self.path} is a recording of {age} version of bertology (format {version})",
                f"a recording in format {FORMAT_VERSION}",
                remedy,
            )
        return Refusal(f"{self.path / MANIFEST} is not the manifest of a recording", "a recording folder", remedy)

    def _damage_refusal(self, name: str, reason: str) -> Refusal:
        return Refusal(
            f"{self.path / name} is damaged or missing ({reason})",
            "an unchanged recording of `bertology record`",
            f"Delete the folder {self.path} and record again",
        )


def _digest_json(value: Mapping[str, Any]) -> str:
    return digest_bytes(json.dumps(value, sort_keys=True).encode())
