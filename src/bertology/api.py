"""`bertology.run`: run an analysis by name on a model and a corpus, or on a recording."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertology.corpus.corpus import Corpus
from bertology.errors import Refusal
from bertology.results.result import Result

if TYPE_CHECKING:
    from bertology.encoder.encoder import Encoder
    from bertology.recording.plan import RecordingConfig
    from bertology.recording.recording import Recording


def run(
    analysis: str,
    encoder: Encoder | str | None = None,
    corpus: Corpus | str | Path | None = None,
    *,
    recording: Recording | None = None,
    against: Encoder | str | None = None,
    config: RecordingConfig | None = None,
    store: Path | None = None,
    **options: Any,
) -> Result:
    """The result of an analysis; `options` are the options of that analysis.

    Models and corpora may be given by name or path. With a `store` (a directory) recordings are kept and reused.
    """
    from bertology.analyses import registry
    from bertology.analyses.run import RunInputs, run_analysis
    from bertology.corpus.read import load_corpus
    from bertology.encoder.load import load
    from bertology.recording.plan import RecordingConfig

    if recording is None and (encoder is None or corpus is None):
        raise Refusal(
            f"{analysis} was given neither a recording nor both a model and a corpus",
            "run(analysis, encoder, corpus) or run(analysis, recording=...)",
            "Add what is missing; see bertology.load and bertology.read",
        )
    inputs = RunInputs(
        corpus=load_corpus(str(corpus)) if isinstance(corpus, str | Path) else corpus,
        encoder=load(encoder) if isinstance(encoder, str) else encoder,
        recording=recording,
        against=load(against) if isinstance(against, str) else against,
        config=config or RecordingConfig(),
        store=store,
    )
    return run_analysis(registry.get(analysis), inputs, options)
