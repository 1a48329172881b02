"""Recordings on disk: damaged bytes, and crafted contents whose digests are right."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import bertology
from bertology.analyses import registry
from bertology.atomic_files import digest_bytes
from bertology.recording.shards import write_shard
from bertology.recording.stream_parts import STREAM_FILE
from fuzz.kind import Files, Kind, read_files
from fuzz.mutations import deep_json, mutate_bytes, mutate_json

TEXTS = ["The cat sat.", "A dog ran home.", "Yes."]
SITES = ["attention", "hidden", "attention.entropy"]
ANALYSES = ["attention/entropy", "attention/targets"]
PROPORTION_OF_STREAMS = 0.2


class Recordings(Kind):
    """A recording of a small model on three sentences, at once or in parts."""

    name = "recordings"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        target = folder / "recording"
        registry.load_all()  # analyses declare the sites they need
        bertology.record("tiny", TEXTS, SITES, folder=target)
        self.files = read_files(target)
        (folder / "texts.txt").write_text("\n".join(TEXTS))
        bertology.record(
            "tiny", bertology.stream_corpus(folder / "texts.txt", part_size=2), SITES, folder=folder / "parts"
        )
        self.parts = read_files(folder / "parts")

    def make(self, rng: Random) -> Files:
        """One file damaged, or one part of a description or a shard changed and all digests made right again."""
        if rng.random() < PROPORTION_OF_STREAMS:
            return self._craft_stream(rng)
        files = dict(self.files)
        name = rng.choice(sorted(files))
        match rng.randrange(10):
            case 0 | 1:
                files[name] = mutate_bytes(rng, files[name])
            case 2:
                files[rng.choice(("manifest.json", "corpus.jsonl"))] = deep_json(rng.choice((150, 1000, 100_000)))
            case 3 | 4:
                files = self._craft_shard(rng, files)
            case _:
                files = self._craft_description(rng, files)
        return files

    def consume(self, folder: Path) -> None:
        """Open it, read every array, run an analysis and make a view."""
        recording = bertology.open_recording(folder)
        for arrays in recording.sites.values():
            for array in arrays:
                np.asarray(array, np.float64).sum()
        for name in ANALYSES:
            bertology.run(name, recording=recording)
        bertology.view_recording(recording)

    def _craft_description(self, rng: Random, files: Files) -> Files:
        manifest: dict[str, Any] = json.loads(files["manifest.json"])
        manifest.pop("digest")
        part = rng.choice(("manifest.json", "corpus.jsonl", "inputs.jsonl"))
        if part == "manifest.json":
            changed = mutate_json(rng, manifest)
            manifest = changed if isinstance(changed, dict) else manifest
        else:
            lines = [json.loads(line) for line in files[part].decode().splitlines()]
            index = rng.randrange(len(lines))
            lines = mutate_json(rng, lines) if rng.random() < 0.1 else lines
            if isinstance(lines, list) and index < len(lines):
                lines[index] = mutate_json(rng, lines[index])
            values = lines if isinstance(lines, list) else [lines]
            files[part] = b"".join(json.dumps(value).encode() + b"\n" for value in values)
            manifest["digests"][part] = digest_bytes(files[part])
        digest = digest_bytes(json.dumps(manifest, sort_keys=True).encode())
        files["manifest.json"] = json.dumps({**manifest, "digest": digest}).encode()
        return files

    def _craft_stream(self, rng: Random) -> Files:
        """A recording in parts, whose list of parts is changed."""
        files = dict(self.parts)
        content = json.loads(files[STREAM_FILE])
        content.pop("digest")
        match rng.randrange(4):
            case 0:
                files[STREAM_FILE] = mutate_bytes(rng, files[STREAM_FILE])
                return files
            case 1:
                rest = b'"format": ' + deep_json(rng.choice((150, 1000, 100_000))) + b"}"
            case _:
                rest = json.dumps(mutate_json(rng, content)).encode()[1:]
        files[STREAM_FILE] = b'{"digest": "' + digest_bytes(rest).encode() + b'", ' + rest
        return files

    def _craft_shard(self, rng: Random, files: Files) -> Files:
        name = rng.choice(sorted(name for name in files if name.endswith(".safetensors")))
        site = Path(name).parent
        content = files.pop(name)
        if rng.random() < 0.5:
            content = mutate_bytes(rng, content)
        else:
            target = self.folder / "crafted"
            axes = rng.randint(0, 5)
            shapes = [tuple(rng.choice((0, 1, 2, 5, 6)) for _ in range(axes)) for _ in TEXTS]
            kind = rng.choice((np.float32, np.float16, np.int64))
            arrays = [np.full(shape, rng.choice((0, 1, -1, 0.2, np.nan)), np.float32).astype(kind) for shape in shapes]
            file = write_shard(target, 0, rng.sample(range(len(TEXTS)), len(TEXTS)), arrays)
            content = file.read_bytes()
            file.unlink()
        digest = hashlib.sha256(content).hexdigest()[:32]
        files[str(site / f"00000-{digest}.safetensors")] = content
        return files
