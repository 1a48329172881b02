"""One slice of a recording: every n-th shard, for arrays of jobs that share a folder and know nothing of each other."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from bertology.corpus.read import as_corpus
from bertology.encoder.load import as_encoder
from bertology.engines.engine import Engine, open_engine
from bertology.errors import Refusal
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import (
    MessageCallback,
    ProgressCallback,
    check_sites_available,
    prepare_shards,
)
from bertology.recording.sites import Site, resolve_sites
from bertology.store_paths import StorePath, store_path

_SLICE = re.compile(r"(\d{1,6})/(\d{1,6})", re.ASCII)


@dataclass(frozen=True)
class Slice:
    """Slice `number` of `count`, counted from 1: the shards whose index leaves the remainder number - 1."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def contains(self, shard: int) -> bool:
        """Whether a shard belongs to the slice."""
        return shard % self.count == self.number - 1


@dataclass(frozen=True)
class SliceReport:
    """The shards that a call recorded, and how many of all shards of the recording are finished now."""

    folder: StorePath
    recorded: int
    finished: int
    shards: int

    @property
    def is_complete(self) -> bool:
        """Whether all shards of the recording are there."""
        return self.finished == self.shards


def parse_slice(text: str) -> Slice:
    """The slice of a text such as 3/16."""
    match = _SLICE.fullmatch(text)
    number, count = (int(match[1]), int(match[2])) if match is not None else (0, 0)
    if not 1 <= number <= count:
        raise Refusal(
            f"The slice was given as {text!r}",
            "NUMBER/COUNT with a number from 1 to the count, such as 3/16",
            "Write --slice 1/16 to --slice 16/16 for sixteen processes",
        )
    return Slice(number, count)


def record_slice(
    encoder: Any,
    corpus: Any,
    sites: Iterable[str | Site],
    *,
    slice: str,
    config: RecordingConfig = RecordingConfig(),
    store: str | StorePath | None = None,
    folder: str | StorePath | None = None,
    engine: Engine | str | None = None,
    progress: ProgressCallback | None = None,
    notify: MessageCallback | None = None,
) -> SliceReport:
    """Record one slice, such as 3/16, of the missing shards of a recording; the other arguments are those of `record`.

    Any number of processes may do so at the same time, for the same slice too: a shard appears complete or not at all.
    When the last slice is done, `record` and `open_recording` find the recording complete.
    """
    chosen = parse_slice(slice)
    encoder, corpus = as_encoder(encoder), as_corpus(corpus)
    store, folder = (None if path is None else store_path(path) for path in (store, folder))
    if store is None and folder is None:
        raise Refusal(
            "A slice was asked for, and neither a folder nor a store",
            "the folder that all slices share",
            "Name it with -o DIR (folder= in Python)",
        )
    resolved = resolve_sites(sites, encoder.task_heads)
    check_sites_available(encoder, resolved, config)
    writer = prepare_shards(encoder, corpus, resolved, config, store=store, folder=folder)
    n_recorded = sum(map(chosen.contains, writer.missing(writer.files())))
    with open_engine(engine) as opened:
        writer.record_missing(progress, notify, opened, chosen.contains)
    n_shards = len(writer.plan.shards)
    return SliceReport(writer.folder.path, n_recorded, n_shards - len(writer.missing(writer.files())), n_shards)
