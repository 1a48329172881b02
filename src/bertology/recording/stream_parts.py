"""A recording of a corpus that was recorded in parts: its inputs, examples and arrays are read a part at a time.

DIR/part-00000/...        an ordinary recording of the first examples
DIR/stream.json           the parts in order, and what was counted over all of them; written when all are finished
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from bertology.arrays import Array, LazySequence
from bertology.checked_files import DamagedFileError, read_checked_json, write_checked_json
from bertology.corpus.corpus import ExampleCounts, LabelNames, StoredExamples
from bertology.corpus.example import Example
from bertology.errors import Refusal
from bertology.input_files import describe_error
from bertology.number_ranges import MAX_COUNT
from bertology.recording.recording import Recording
from bertology.recording.stored_description import Count, Digest
from bertology.store_paths import StorePath

if TYPE_CHECKING:
    from bertology.encoder.token_batch import RecordedInput

STREAM_FILE = "stream.json"
STREAM_FORMAT = 1
PART_FOLDER = re.compile(r"part-\d{5,}")
N_OPEN_PARTS = 2
"""Parts that are in memory at a time; analyses go over inputs in order."""


class PartSummary(BaseModel):
    """One part: its folder, its corpus' fingerprint, its numbers of examples and inputs, and the recording's counts."""

    model_config = ConfigDict(extra="forbid", strict=True)

    folder: Annotated[str, Field(pattern=r"^(part-\d{5,}|[0-9a-f]{24})$")]
    corpus: Digest
    examples: Annotated[int, Field(ge=1, le=MAX_COUNT)]
    inputs: Annotated[int, Field(ge=1, le=MAX_COUNT)]
    counts: dict[str, Count]


class _StoredCounts(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    fingerprint: Digest
    words: Count
    annotations: dict[str, Count]
    labels: list[dict[str, Count]]
    skipped: dict[str, Count]


class _StoredStream(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    format: int
    counts: _StoredCounts
    sites: list[str]
    parts: Annotated[list[PartSummary], Field(min_length=1)]


@dataclass(frozen=True)
class RecordedStream:
    """The finished parts below a folder, in order, with what was counted over all examples and the recorded sites."""

    root: StorePath
    parts: Sequence[PartSummary]
    counts: ExampleCounts
    sites: Sequence[str]

    def write(self) -> None:
        """Write the list of parts; sites that an earlier call recorded stay in it if the corpus is the same."""
        earlier = read_stream(self.root)
        is_same = earlier is not None and [p.corpus for p in earlier.parts] == [p.corpus for p in self.parts]
        sites = {*self.sites, *(earlier.sites if earlier is not None and is_same else ())}
        counts = self.counts
        stored = _StoredStream(
            format=STREAM_FORMAT,
            counts=_StoredCounts(
                fingerprint=counts.fingerprint,
                words=counts.words,
                annotations=dict(counts.annotations),
                labels=[dict(names) for names in counts.label_names],
                skipped=dict(counts.skipped),
            ),
            sites=sorted(sites),
            parts=list(self.parts),
        )
        write_checked_json(self.root / STREAM_FILE, stored.model_dump())

    def open(self, *, store: StorePath | None = None) -> Recording:
        """The recording of all parts, of which at most two are in memory at a time."""
        opener = _PartOpener(self.root, self.parts)
        first = opener.open(0)
        identity = f"{first.encoder.fingerprint} {self.counts.fingerprint} {sorted(first.config.items())}"
        counts: Counter[str] = Counter()
        for part in self.parts:
            counts.update(part.counts)
        return replace(
            first,
            corpus=replace(first.corpus, examples=_PartExamples(opener, self.counts)),
            inputs=_PartInputs(opener, identity),
            sites={site: _PartArrays(opener, site, f"{identity} {site}") for site in self.sites},
            counts=dict(counts),
            incomplete_sites={},
            store=store,
        )


def open_stream(root: StorePath) -> Recording | None:
    """The recording in parts in a folder; None if there is none, refused if it is unfinished or damaged."""
    stream = read_stream(root)
    if stream is not None:
        return stream.open()
    names = [path.name for path in root.iterdir()] if root.is_dir() else []
    n_parts = sum(PART_FOLDER.fullmatch(name) is not None for name in names)
    if not n_parts:
        return None
    raise Refusal(
        f"{root} holds an unfinished recording in parts (there is no {STREAM_FILE}; {n_parts} parts are begun)",
        "a finished recording",
        "Run the same `bertology record ... --stream` command again: it resumes where it stopped",
    )


def read_stream(root: StorePath) -> RecordedStream | None:
    """The list of parts in a folder; None if there is none."""
    file = root / STREAM_FILE
    try:
        content = read_checked_json(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except DamagedFileError as error:
        raise _damaged(file, str(error)) from error
    except OSError as error:
        raise _damaged(file, error.strerror or str(error)) from error
    try:
        if content.get("format") != STREAM_FORMAT:
            raise ValueError(f"its format is {content.get('format')!r}, not {STREAM_FORMAT}")
        stored = _StoredStream.model_validate(content)
        if len(stored.counts.labels) != len(LabelNames._fields):
            raise ValueError("names of labels are missing")
    except ValueError as error:
        raise _damaged(file, describe_error(error)) from error
    counts = stored.counts
    return RecordedStream(
        root,
        stored.parts,
        ExampleCounts(
            counts.fingerprint,
            counts.words,
            Counter(counts.annotations),
            LabelNames(*map(Counter, counts.labels)),
            Counter(counts.skipped),
        ),
        stored.sites,
    )


def _damaged(file: StorePath, reason: str) -> Refusal:
    return Refusal(
        f"{file} is damaged ({reason})",
        "the list of parts that `bertology record --stream` wrote",
        "Delete the file and run the same command again: finished parts are kept",
    )


class _PartOpener:
    """Opens parts when they are needed and forgets the one used longest ago."""

    def __init__(self, root: StorePath, parts: Sequence[PartSummary]) -> None:
        self.root = root
        self.parts = parts
        self.input_starts = _starts(part.inputs for part in parts)
        self.example_starts = _starts(part.examples for part in parts)
        self._open: OrderedDict[int, Recording] = OrderedDict()

    def open(self, number: int) -> Recording:
        """The recording of a part; refused if it is not the one that was listed."""
        from bertology.recording.manifest import open_recording

        if number not in self._open:
            while len(self._open) >= N_OPEN_PARTS:
                self._open.popitem(last=False)
            part = self.parts[number]
            recording = open_recording(self.root / part.folder)
            if (len(recording), len(recording.corpus)) != (part.inputs, part.examples):
                raise Refusal(
                    f"{self.root / part.folder} has {len(recording)} inputs of {len(recording.corpus)} examples",
                    f"{part.inputs} inputs of {part.examples} examples, as {STREAM_FILE} says",
                    "Run the same `bertology record ... --stream` command again",
                )
            self._open[number] = recording
        self._open.move_to_end(number)
        return self._open[number]


def _starts(lengths: Iterable[int]) -> Array:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(list(lengths), dtype=np.int64)])


def _locate(starts: Array, index: int) -> tuple[int, int]:
    """The part that an element is in, and its index there."""
    number = int(np.searchsorted(starts, index, side="right")) - 1
    return number, index - int(starts[number])


class _PartExamples(StoredExamples):
    """The examples of all parts."""

    def __init__(self, opener: _PartOpener, counts: ExampleCounts) -> None:
        self._opener = opener
        self.counts = counts

    def __len__(self) -> int:
        return int(self._opener.example_starts[-1])

    def load(self, index: int) -> Example:
        """One example."""
        number, position = _locate(self._opener.example_starts, index)
        return self._opener.open(number).corpus[position]


class _PartInputs(LazySequence["RecordedInput"]):
    """The inputs of all parts; `fingerprint` identifies them in keys of cached values."""

    def __init__(self, opener: _PartOpener, fingerprint: str) -> None:
        self._opener = opener
        self.fingerprint = fingerprint

    def __len__(self) -> int:
        return int(self._opener.input_starts[-1])

    def load(self, index: int) -> RecordedInput:
        """One input, with the index of its example among those of all parts."""
        number, position = _locate(self._opener.input_starts, index)
        recorded = self._opener.open(number).inputs[position]
        return replace(recorded, example_index=recorded.example_index + int(self._opener.example_starts[number]))


class _PartArrays(LazySequence[Array]):
    """The arrays of one site in all parts; `fingerprint` identifies them in keys of cached values."""

    def __init__(self, opener: _PartOpener, site: str, fingerprint: str) -> None:
        self._opener = opener
        self._site = site
        self.fingerprint = fingerprint

    def __len__(self) -> int:
        return int(self._opener.input_starts[-1])

    def load(self, index: int) -> Array:
        """The array of one input."""
        number, position = _locate(self._opener.input_starts, index)
        return self._opener.open(number)[self._site][position]
