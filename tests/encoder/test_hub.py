"""Models on the hub, with a fake hub: requests, downloads, the local cache, and failures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError

import tiny_models
from bertology.encoder.hub import is_hub_name, resolve_hub_model
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
    """A fake `huggingface_hub` that logs requests and downloads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, files: list[str], cached: Path | None = None) -> None:
        self.files = files
        self.cached = cached
        self.requests = 0
        self.downloaded: list[str] = []
        self.revisions: list[str | None] = []
        monkeypatch.setattr(huggingface_hub, "HfApi", lambda: self)
        monkeypatch.setattr(huggingface_hub, "snapshot_download", self.snapshot_download)

    @property
    def siblings(self) -> list[_Sibling]:
        return [_Sibling(name) for name in self.files]

    def model_info(self, name: str, timeout: float, revision: str | None) -> Any:
        self.requests += 1
        self.revisions.append(revision)
        if not self.files:
            raise OSError(f"no model {name}")
        return self

    def snapshot_download(self, name: str, **options: Any) -> str:
        self.revisions.append(options["revision"])
        if options.get("local_files_only"):
            if self.cached is None:
                raise LocalEntryNotFoundError("not cached")
            return str(self.cached)
        self.downloaded = options["allow_patterns"]
        return str(tiny_models.directory("bert"))


def test_only_configuration_tokeniser_and_weights_are_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = _Hub(monkeypatch, FILES)
    loaded = load("owner/name")
    assert loaded.name == "owner/name"
    assert hub.downloaded == ["config.json", "model.safetensors", "tokenizer.json", "vocab.txt"]
    assert hub.requests == 1


def test_a_revision_is_asked_for_everywhere_and_stands_in_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = _Hub(monkeypatch, FILES)
    assert load("owner/name", revision="v2").name == "owner/name@v2"
    assert hub.revisions == ["v2", "v2", "v2"]
    for local in ("tiny", str(tiny_models.directory("bert"))):
        with pytest.raises(Refusal, match=r"The revision 'v2' was given for .* Omit the revision"):
            load(local, revision="v2")


def test_pickled_weights_are_downloaded_only_if_allowed_and_without_safetensors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hub = _Hub(monkeypatch, FILES)
    resolve_hub_model("owner/name", allow_pickle=True)
    assert "pytorch_model.bin" not in hub.downloaded
    hub.files = [name for name in FILES if name != "model.safetensors"]
    resolve_hub_model("owner/name", allow_pickle=True)
    assert "pytorch_model.bin" in hub.downloaded
    resolve_hub_model("owner/name", allow_pickle=False)
    assert "pytorch_model.bin" not in hub.downloaded


def test_a_cached_model_needs_no_request(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hub = _Hub(monkeypatch, FILES, cached=tiny_models.directory("bert"))
    assert load("owner/name").fingerprint == tiny_models.encoder("bert").fingerprint
    assert hub.requests == 0
    hub.cached = tmp_path
    resolve_hub_model("owner/name", allow_pickle=False)
    assert hub.requests == 1, "an incomplete download is requested again"


def test_a_model_that_is_not_on_the_hub_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _Hub(monkeypatch, [])
    with pytest.raises(Refusal, match=r"the hub returned no model of that name \(no model owner/name\)"):
        resolve_hub_model("owner/name", allow_pickle=False)


def test_names_of_hub_models() -> None:
    assert all(map(is_hub_name, ["bert-base-uncased", "google/bert_uncased_L-2", "a.b/c"]))
    assert not any(map(is_hub_name, ["", "a/b/c", "../x", "a b", "x:y", "/root", "a/"]))
