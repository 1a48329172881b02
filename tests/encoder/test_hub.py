"""The hub, played by a folder: what is asked for, what is downloaded, and what happens without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError

import models
from bertology.encoder.hub import fetch, is_hub_name
from bertology.encoder.load import load
from bertology.errors import Refusal

FILES = [
    "config.json",
    "model.safetensors",
    "pytorch_model.bin",
    "tokenizer.json",
    "vocab.txt",
    "modeling_evil.py",
    "README.md",
    "onnx/config.json",
    "tf_model.h5",
]


class _Sibling:
    def __init__(self, name: str) -> None:
        self.rfilename = name


class _Hub:
    """Stands in for `huggingface_hub`: remembers what was downloaded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, files: list[str], cached: Path | None = None) -> None:
        self.files = files
        self.cached = cached
        self.asked = 0
        self.downloaded: list[str] = []
        monkeypatch.setattr(huggingface_hub, "HfApi", lambda: self)
        monkeypatch.setattr(huggingface_hub, "snapshot_download", self.snapshot_download)

    @property
    def siblings(self) -> list[_Sibling]:
        return [_Sibling(name) for name in self.files]

    def model_info(self, name: str, timeout: float) -> Any:
        self.asked += 1
        if not self.files:
            raise OSError(f"no model {name}")
        return self

    def snapshot_download(self, name: str, **options: Any) -> str:
        if options.get("local_files_only"):
            if self.cached is None:
                raise LocalEntryNotFoundError("not cached")
            return str(self.cached)
        self.downloaded = options["allow_patterns"]
        return str(models.directory("bert"))


def test_only_what_a_model_is_made_of_is_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = _Hub(monkeypatch, FILES)
    loaded = load("owner/name")
    assert loaded.name == "owner/name"
    assert hub.downloaded == ["config.json", "model.safetensors", "tokenizer.json", "vocab.txt"]
    assert hub.asked == 1


def test_pickled_weights_are_downloaded_only_with_the_flag_and_only_where_there_are_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hub = _Hub(monkeypatch, FILES)
    fetch("owner/name", allow_pickle=True)
    assert "pytorch_model.bin" not in hub.downloaded
    hub.files = [name for name in FILES if name != "model.safetensors"]
    fetch("owner/name", allow_pickle=True)
    assert "pytorch_model.bin" in hub.downloaded
    fetch("owner/name", allow_pickle=False)
    assert "pytorch_model.bin" not in hub.downloaded


def test_a_cached_model_needs_no_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hub = _Hub(monkeypatch, FILES, cached=models.directory("bert"))
    assert load("owner/name").fingerprint == models.encoder("bert").fingerprint
    assert hub.asked == 0
    hub.cached = tmp_path
    fetch("owner/name", allow_pickle=False)
    assert hub.asked == 1, "a half-downloaded model is asked for again"


def test_a_model_that_the_hub_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    _Hub(monkeypatch, [])
    with pytest.raises(Refusal, match=r"the hub did not give a model of that name \(no model owner/name\)"):
        fetch("owner/name", allow_pickle=False)


def test_names_a_hub_could_have() -> None:
    assert all(map(is_hub_name, ["bert-base-uncased", "google/bert_uncased_L-2", "a.b/c"]))
    assert not any(map(is_hub_name, ["", "a/b/c", "../x", "a b", "x:y", "/root", "a/"]))
