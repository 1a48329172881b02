"""Attention of other programs: .npz files with tokens, and the JSON lines beside them."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import bertology
from fuzz.kind import Files, Kind, read_files
from fuzz.mutations import mutate_bytes, mutate_json

TEXTS = ["The cat sat.", "A dog ran home."]
DTYPES: tuple[Any, ...] = (
    "f2", "f4", "f8", ">f4", "i8", "u1", "?", "c8", "U3", "S3", "M8[s]", "m8[s]", "V4", [("x", "f4")], "f16", "U0",
)  # fmt: skip


class ForeignMaps(Kind):
    """A folder of .npz files."""

    name = "foreign maps"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        recording = bertology.record("tiny", TEXTS, ["attention", "hidden"])
        from bertology.recording.npz_files import save_arrays

        self.files = read_files(save_arrays(recording, folder / "maps"))

    def make(self, rng: Random) -> Files:
        """An archive damaged, arrays replaced by others, or a line changed."""
        files = dict(self.files)
        name = rng.choice(sorted(name for name in files if name.endswith(".npz")))
        if rng.random() < 0.2:
            del files["inputs.jsonl"]
        match rng.randrange(5):
            case 0 | 1:
                files[name] = mutate_bytes(rng, files[name])
            case 2 | 3:
                files[name] = self._craft_archive(rng, files[name])
            case _:
                lines = [json.loads(line) for line in self.files["inputs.jsonl"].decode().splitlines()]
                index = rng.randrange(len(lines))
                lines[index] = mutate_json(rng, lines[index])
                files["inputs.jsonl"] = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        return files

    def consume(self, folder: Path) -> None:
        """Open the folder, run an analysis and make a view."""
        recording = bertology.open_recording(folder)
        if "attention" in recording.sites:
            bertology.run("attention/entropy", recording=recording)
            bertology.view_recording(recording)

    def _craft_archive(self, rng: Random, content: bytes) -> bytes:
        with np.load(io.BytesIO(content)) as archive:
            arrays: dict[str, Any] = dict(archive)
        for _ in range(rng.randint(1, 2)):
            name = rng.choice([*sorted(arrays), "x"])
            arrays[name] = _odd_array(rng, arrays.get(name, arrays["tokens"]))
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays) if rng.random() < 0.3 else np.savez(buffer, **arrays)
        return _craft_header(rng, buffer.getvalue()) if rng.random() < 0.2 else buffer.getvalue()


def _odd_array(rng: Random, array: Any) -> Any:
    match rng.randrange(7):
        case 0:
            return np.zeros(tuple(rng.choice((0, 1, 2, 5)) for _ in range(rng.randint(0, 5))), rng.choice(DTYPES))
        case 1 if array.dtype.kind == "f":
            return array + rng.choice((1, -1, np.nan, np.inf, 1e30))
        case 2 if array.ndim:
            return array[: rng.randint(0, len(array))]
        case 3:
            return array[None]
        case 4:
            return np.array(rng.choice(("", "[CLS]", "x" * 300, "\ud800", "a\0b", "\n")))
        case 5 if array.dtype.kind == "U" and array.ndim and len(array):
            changed = array.astype("U300")
            changed[rng.randrange(len(changed))] = rng.choice(("", "[PAD]", "[SEP]", "\ud800", " ", "x" * 300))
            return changed
        case _:
            return np.full(array.shape, rng.choice((0, -1, 7, 10**18)), rng.choice(("i8", "f4")))


def _craft_header(rng: Random, content: bytes) -> bytes:
    """The archive with another shape, type or length in the header of one array."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(buffer, "w") as target:
        names = source.namelist()
        changed = rng.choice(names)
        for name in names:
            data = source.read(name)
            if name == changed:
                shape = rng.choice(("(999999999999,)", "(-1,)", "(2, 2)", "('x',)", "()", f"({'9' * 40},)", "(1e9,)"))
                kind = rng.choice(("<f4", "|O", "<U99999", "<f4x", "|V0"))
                header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode() + b"\n"
                data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data[:32]
            target.writestr(name, data)
    return buffer.getvalue()
