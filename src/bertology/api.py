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
    against: Encoder | Recording | str | None = None,
    config: RecordingConfig | None = None,
    store: Path | None = None,
    like: str | None = None,
    **options: Any,
) -> Result:
    """The result of an analysis; `options` are the options of that analysis.

    Models and corpora may be given by name or path; beside a recording, `against` can be a recording of another model
    on the same inputs. With a `store` (a directory) recordings are kept and reused. `like` is a paper, for example
    clark2019, whose definitions are used where `options` do not say otherwise; the published numbers are then in the
    provenance of the result.
    """
    from bertology.analyses import registry
    from bertology.analyses.presets import find_preset, with_published
    from bertology.analyses.run import RunInputs, run_analysis
    from bertology.corpus.read import load_corpus
    from bertology.encoder.load import load
    from bertology.recording.plan import RecordingConfig
    from bertology.recording.recording import Recording

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
        against=load(against) if isinstance(against, str) else None if isinstance(against, Recording) else against,
        against_recording=against if isinstance(against, Recording) else None,
        config=config or RecordingConfig(),
        store=store,
    )
    declared = registry.get(analysis)
    if like is None:
        return run_analysis(declared, inputs, options)
    preset = find_preset(declared, like)
    return with_published(run_analysis(declared, inputs, preset.with_explicit(options)), preset, options)
