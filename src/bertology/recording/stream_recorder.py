"""Record a corpus that is read in parts: each part is an ordinary recording, and none is in memory with another.

The source is read once from its beginning. A part that is finished is recognised by its fingerprint and neither
tokenised nor run again, so that an interrupted recording resumes at its first unfinished part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from bertology.corpus.corpus import ExampleCounts, LabelNames
from bertology.corpus.hashing import Fingerprint
from bertology.corpus.stream import CorpusStream
from bertology.encoder.encoder import Encoder
from bertology.engines.engine import Engine, open_engine
from bertology.errors import Refusal
from bertology.progress import ProgressStep, describe_step
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import record, recording_key
from bertology.recording.recording import Recording
from bertology.recording.sites import Site, resolve_sites
from bertology.recording.store import recording_hash
from bertology.recording.stream_parts import PartSummary, RecordedStream
from bertology.store_paths import StorePath, store_path


def record_stream(
    encoder: Encoder,
    stream: CorpusStream,
    sites: Iterable[str | Site],
    config: RecordingConfig,
    *,
    store: str | StorePath | None,
    folder: str | StorePath | None,
    engine: Engine | str | None = None,
    progress: Callable[[int, int], None] | None = None,
    notify: Callable[[str], None] | None = None,
) -> Recording:
    """Record the parts of a stream into a folder, or each under its own hash into a store, and open all of them.

    The workers of an engine share the shards of one part after the other.
    """
    root = folder if folder is not None else store
    if root is None:
        raise Refusal(
            f"A stream ({stream.name}) is recorded, and neither a store nor a folder is named",
            "a place on disk, as a stream may be larger than memory",
            "Add folder=... or store=...",
        )
    path, resolved = store_path(root), resolve_sites(sites, encoder.task_heads)
    parts: list[PartSummary] = []
    counter, tokens = _ExampleCounter(), _PartProgress(progress)
    with open_engine(engine) as opened:
        for corpus in stream.parts():
            name = (
                f"part-{len(parts):05d}"
                if folder is not None
                else recording_hash(recording_key(encoder, corpus, config))
            )
            recording = record(
                encoder,
                corpus,
                resolved,
                config=config,
                folder=path / name,
                max_hours=None,
                engine=opened,
                progress=tokens.start_part(),
            )
            counter.add(recording)
            parts.append(
                PartSummary(
                    folder=name,
                    corpus=corpus.fingerprint,
                    examples=len(corpus),
                    inputs=len(recording),
                    counts=dict(recording.counts),
                )
            )
            if tokens.was_recorded and notify and tokens.n_finished:
                notify(f"Resuming the recording: {tokens.n_finished} parts are finished ({path}).")
                tokens.n_finished = 0
            del recording, corpus  # before the next part is read
    recorded = RecordedStream(path, parts, counter.counts(), [site.storage_key for site in resolved])
    if folder is not None:
        recorded.write()
    if notify and not tokens.n_recorded:
        notify(f"Using the stored recording of {len(parts)} parts ({path}).")
    return recorded.open(store=None if folder is not None else path)


class _ExampleCounter:
    """What a corpus counts over all examples, summed over parts as they are read."""

    def __init__(self) -> None:
        self._fingerprint = Fingerprint()
        self._n_words = 0
        self._annotations: Counter[str] = Counter()
        self._labels = LabelNames(Counter(), Counter(), Counter())
        self._skipped: Counter[str] = Counter()

    def add(self, recording: Recording) -> None:
        """Count the corpus of a part."""
        counts = recording.corpus.counts
        self._fingerprint.update(recording.corpus)
        self._n_words += counts.words
        self._annotations.update(counts.annotations)
        self._skipped.update(counts.skipped)
        for names, of_part in zip(self._labels, counts.label_names, strict=True):
            names.update(of_part)

    def counts(self) -> ExampleCounts:
        """The counts of all parts."""
        return ExampleCounts(self._fingerprint.digest, self._n_words, self._annotations, self._labels, self._skipped)


class _PartProgress:
    """Progress over all parts read so far, as nobody knows how many follow; and how many had to be recorded."""

    def __init__(self, progress: Callable[[int, int], None] | None) -> None:
        self._progress = progress
        self._before = self._done = 0
        self.n_finished = self.n_recorded = 0
        self.was_recorded = False

    def start_part(self) -> ProgressStep:
        """The progress callback of the next part."""
        self._before += self._done
        self._done = 0
        self.was_recorded = False
        return ProgressStep(self._report)

    def _report(self, done: int, total: int, detail: str) -> None:
        if not done:
            self.n_finished += total == 0
            self.n_recorded += total > 0
            self.was_recorded = total > 0
        self._done = done
        if self._progress:
            describe_step(self._progress, detail)
            self._progress(self._before + done, self._before + total)
