"""`bertology.run`: an analysis by name, on a model and a corpus or on a recording, in one call."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertology.corpus.corpus import Corpus
from bertology.errors import Refusal
from bertology.results.result import Result

if TYPE_CHECKING:
    from bertology.encoder.encoder import Encoder
    from bertology.recording.recorder import Policy
    from bertology.recording.recording import Recording


def run(
    analysis: str,
    encoder: Encoder | str | None = None,
    corpus: Corpus | str | Path | None = None,
    *,
    recording: Recording | None = None,
    against: Encoder | str | None = None,
    policy: Policy | None = None,
    store: Path | None = None,
    **options: Any,
) -> Result:
    """The result of the analysis called `analysis`; `options` are its own.

    Models and corpora may be given by name or path. With a `store` (a folder) forward passes are kept and shared.
    """
    from bertology.analyses import registry
    from bertology.analyses.run import Subject
    from bertology.analyses.run import run as run_declared
    from bertology.corpus.builtin import corpus_named
    from bertology.encoder.load import load
    from bertology.recording.recorder import Policy

    if recording is None and (encoder is None or corpus is None):
        raise Refusal(
            f"{analysis} was given neither a recording nor both a model and a corpus",
            "run(analysis, encoder, corpus) or run(analysis, recording=...)",
            "Give what is missing; bertology.load and bertology.read make them",
        )
    subject = Subject(
        corpus=corpus_named(str(corpus)) if isinstance(corpus, str | Path) else corpus,
        encoder=load(encoder) if isinstance(encoder, str) else encoder,
        recording=recording,
        against=load(against) if isinstance(against, str) else against,
        policy=policy or Policy(),
        store=store,
    )
    return run_declared(registry.get(analysis), subject, options)
