"""Files with a digest: what was written is read back, and no flipped bit, cut or foreign file passes for it."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertology.checked_files import (
    DamagedFileError,
    read_checked_bytes,
    read_checked_json,
    write_checked_bytes,
    write_checked_json,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


FIELDS = st.dictionaries(st.text().filter(lambda name: name != "digest"), VALUES, min_size=1, max_size=5)


@given(content=FIELDS, indent=st.booleans())
def test_json_is_read_back_as_it_was_written(
    content: dict[str, object], indent: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("json") / "file.json"
    write_checked_json(file, content, indent=1 if indent else None)
    assert read_checked_json(file) == content
    plain = json.loads(file.read_bytes().decode("utf-8", "surrogatepass"))
    assert {name: value for name, value in plain.items() if name != "digest"} == content


@given(content=st.binary())
def test_bytes_are_read_back_as_they_were_written(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("bytes") / "file"
    write_checked_bytes(file, content)
    assert read_checked_bytes(file) == content


@pytest.mark.parametrize("kind", ["json", "bytes"])
def test_every_damage_is_found(kind: str, tmp_path: Path) -> None:
    file, rng = tmp_path / "file", random.Random(0)
    if kind == "json":
        write_checked_json(file, {"scores": [rng.random() for _ in range(20)], "name": "a model"})
    else:
        write_checked_bytes(file, rng.randbytes(300))
    read = read_checked_json if kind == "json" else read_checked_bytes
    intact = file.read_bytes()
    flips = [(position, 1 << bit) for position in range(len(intact)) for bit in range(8)]
    for position, bit in rng.sample(flips, 500):
        file.write_bytes(intact[:position] + bytes([intact[position] ^ bit]) + intact[position + 1 :])
        with pytest.raises(DamagedFileError, match="digest does not match"):
            read(file)
    for length in range(len(intact)):
        file.write_bytes(intact[:length])
        with pytest.raises(DamagedFileError):
            read(file)
    for foreign in (b"{}", b'{"digest": "0"}', b"[]", intact + b" "):
        file.write_bytes(foreign)
        with pytest.raises(DamagedFileError):
            read(file)
