"""A content-addressed store of recordings: no pickle, memory-mapped, atomic shards, nothing recorded twice.

    ROOT/<address>/manifest.json        who, what, how: encoder, corpus, policy, plan, counts
    ROOT/<address>/entries.jsonl        the pieces of every entry and their alignment
    ROOT/<address>/corpus.jsonl         the items, with their annotation
    ROOT/<address>/<site>/00007-<digest>.safetensors

`<address>` is a hash of encoder, corpus and policy. Each shard's name ends in the digest of its bytes, and the
manifest holds its own and those of the two other files: bytes that do not match are noticed before they are used.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertology.errors import Refusal
from bertology.recording.files import DIGITS, digest_of, finish, remove_abandoned, write_first, writing
from bertology.recording.shards import SHARD, Arrays, has_its_size, write_shard

FORMAT = 1
MANIFEST = "manifest.json"


def default_root() -> Path:
    """`$BERTOLOGY_HOME/recordings`, else the user's cache folder."""
    home = os.environ.get("BERTOLOGY_HOME")
    cache = os.environ.get("XDG_CACHE_HOME")
    base = Path(home) if home else (Path(cache) if cache else Path.home() / ".cache") / "bertology"
    return base / "recordings"


def address(parts: Mapping[str, Any]) -> str:
    """The hash under which a recording with this encoder, corpus and policy is kept."""
    canonical = json.dumps({"format": FORMAT, **parts}, sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Shelf:
    """One recording's folder in the store."""

    path: Path

    def manifest(self) -> dict[str, Any] | None:
        """The manifest, or None where nothing is recorded yet; refused where it is damaged."""
        file = self.path / MANIFEST
        try:
            found = json.loads(file.read_text("utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except PermissionError as error:
            raise Refusal(
                f"{self.path} may not be read",
                "a folder of your own",
                "Choose another one, with -o or --store, or change its permissions",
            ) from error
        except (OSError, ValueError) as error:
            raise self._damaged(MANIFEST, str(error)) from error
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise Refusal(
                f"{file} is not the manifest of a recording in format {FORMAT}",
                "a folder written by this version of bertology",
                "Record into another folder, or delete this one: it will be recorded again",
            )
        if found.pop("digest", None) != _digest_of_json(found):
            raise self._damaged(MANIFEST, "its digest does not match")
        return found

    def write_manifest(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Write the manifest unless another process was first; returns the one that counts."""
        content = {**manifest, "digest": _digest_of_json(manifest)}
        write_first(self.path / MANIFEST, json.dumps(content, ensure_ascii=False).encode())
        written = self.manifest()
        assert written is not None, "a manifest that was just written is there"
        return written

    def write_lines(self, name: str, values: Iterable[Any]) -> str:
        """Write one JSON-lines file whole or not at all, a line at a time; returns its digest."""
        found = hashlib.sha256()
        with writing(self.path, name) as (stream, partial):
            for value in values:
                line = json.dumps(value, ensure_ascii=False).encode() + b"\n"
                found.update(line)
                stream.write(line)
            finish(stream, partial, self.path / name)
        return found.hexdigest()[:DIGITS]

    def lines(self, name: str, digest: str) -> list[Any]:
        """The values of one JSON-lines file; refused where its bytes are not those the manifest knows."""
        try:
            content = (self.path / name).read_bytes()
        except OSError as error:
            raise self._damaged(name, error.strerror or str(error)) from error
        if digest_of(content) != digest:
            raise self._damaged(name, "its digest does not match")
        return [json.loads(line) for line in content.decode().split("\n") if line]

    def write_shard(self, site: str, number: int, entries: Sequence[int], arrays: Arrays) -> Path:
        """Keep one site's arrays for the entries of one shard."""
        return write_shard(self.path / site, number, entries, arrays)

    def shards(self, site: str) -> dict[int, Path]:
        """The shards of a site by number, half-written ones left out.

        Only lengths are looked at: the digest is checked when a shard is first read.
        """
        folder = self.path / site
        found: dict[int, Path] = {}
        for file in sorted(folder.iterdir()) if folder.is_dir() else ():
            name = SHARD.fullmatch(file.name)
            if name is not None and has_its_size(file):
                found[int(name[1])] = file
        return found

    def tidy(self, site: str) -> None:
        """Remove what interrupted or damaged work left in a site's folder; files of others stay."""
        folder = self.path / site
        if not folder.is_dir():
            return
        remove_abandoned(folder)
        for file in folder.iterdir():
            if SHARD.fullmatch(file.name) and not has_its_size(file):
                with suppress(OSError):
                    file.unlink()

    def sites(self) -> list[str]:
        """The sites that have shards here, complete or not."""
        return sorted(p.name for p in self.path.iterdir() if p.is_dir() and self.shards(p.name))

    def _damaged(self, name: str, why: str) -> Refusal:
        return Refusal(
            f"{self.path / name} is damaged or missing ({why})",
            "a recording as `bertology record` wrote it",
            f"Delete the folder {self.path} and record again",
        )


def _digest_of_json(value: Mapping[str, Any]) -> str:
    return digest_of(json.dumps(value, sort_keys=True).encode())
