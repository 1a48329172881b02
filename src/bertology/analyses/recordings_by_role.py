"""The recordings that the analyses of a run share: the model, its untrained copy and the model to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.progress_estimate import SECONDS_PER_WORD, ProgressEstimate, count_words
from bertology.encoder.encoder import Encoder, Randomisable
from bertology.progress import ProgressFactory, ProgressStep, describe_step, no_progress
from bertology.recording.paired_sites import ComparisonUnit, are_same_tokens
from bertology.recording.recorder import record
from bertology.recording.recording import Recording
from bertology.recording.sites import Site, resolve_sites

if TYPE_CHECKING:
    from bertology.analyses.run import Request, RunInputs
    from bertology.progress import MessageCallback


class ForwardPass(NamedTuple):
    """A pass of a model over a corpus, by name."""

    model: str
    corpus: str


class RecordingsByRole:
    """The recordings of a run by role, each made when first needed and shared by all analyses."""

    def __init__(
        self,
        requests: Sequence[Request],
        inputs: RunInputs,
        progress: ProgressFactory | None,
        notify: MessageCallback | None,
        progress_estimate: ProgressEstimate,
    ) -> None:
        self.passes: list[ForwardPass] = []
        self.progress_estimate = progress_estimate
        self.n_words = count_words(inputs.corpus)
        self._requests = requests
        self._inputs = inputs
        self._progress = progress
        self._notify = notify
        self._recordings: dict[str, Recording | None] = {}

    @property
    def cache(self) -> AnalysisCache:
        """The cache for finished parts of an analysis, with its progress."""
        inputs = self._inputs
        return AnalysisCache(inputs.store, self._progress, max_hours=inputs.max_hours, engine=inputs.engine)

    def __getitem__(self, role: str) -> Recording | None:
        if role not in self._recordings:
            self._recordings[role] = self._record_with_pairs(role)
        return self._recordings[role]

    def _record_with_pairs(self, role: str) -> Recording | None:
        sites = [site for a, options in self._requests if role in a.inputs for site in a.sites(options)]
        paired = [site for analysis, _ in self._requests if role in analysis.inputs for site in analysis.paired_sites]
        partner = {"recording": "against", "randomised": "recording"}.get(role)
        recorded, recorded_partner = self._inputs.recorded(role), self._inputs.recorded(partner or "")
        if recorded is not None and recorded_partner is not None:
            compared = {site.storage_key: site.compare_recordings(recorded, recorded_partner) for site in paired}
            return replace(recorded, sites={**recorded.sites, **compared}).with_sites(resolve_sites(sites))
        other = self._encoder(partner) if partner is not None and paired else None
        unit = self._comparison_unit(role, other) if other is not None else "tokens"
        bound = {site.storage_key: site.bind(other, unit) for site in paired} if other is not None else {}
        recording = self._record(role, resolve_sites([*resolve_sites(sites), *bound.values()]))
        if recording is None:
            return None
        available = {key: site for key, site in bound.items() if site.storage_key in recording.sites}
        return replace(
            recording, sites={**recording.sites, **{key: recording[site] for key, site in available.items()}}
        )

    def _comparison_unit(self, role: str, other: Encoder) -> ComparisonUnit:
        """Words if the encoder of a role and `other` tokenise the corpus differently."""
        recorded, encoder = self._inputs.recorded(role), self._encoder(role)
        if recorded is not None:
            texts, tokens = [inp.text for inp in recorded.inputs], [inp.tokens for inp in recorded.inputs]
        elif encoder is not None:
            texts = [text for example in self._inputs.corpus or () for text in example.text_inputs]
            tokens = encoder.tokenise(texts)
        else:
            return "tokens"
        return "tokens" if are_same_tokens(tokens, other.tokenise(texts)) else "words"

    def _record(self, role: str, sites: tuple[Site, ...]) -> Recording | None:
        recorded = self._inputs.recorded(role)
        if recorded is not None:
            return recorded.with_sites(sites)
        encoder = self._encoder(role)
        if encoder is None or self._inputs.corpus is None:
            return None
        forward_pass = ForwardPass(encoder.name, self._inputs.corpus.name)
        bar = self._progress(f"recording {encoder.name}") if self._progress else no_progress
        with self.progress_estimate.step(" on ".join(forward_pass), SECONDS_PER_WORD * self.n_words) as update:

            def show(done: int, total: int, detail: str) -> None:
                needed = total if sites else 0
                update(done, needed)
                describe_step(bar, detail)
                bar(done, total)
                if needed and not done:
                    self.passes.append(forward_pass)

            return record(
                encoder,
                self._inputs.corpus,
                sites,
                config=self._inputs.config,
                store=self._inputs.store,
                max_hours=None,
                engine=None if self._inputs.store is None else self._inputs.engine,
                progress=ProgressStep(show),
                notify=self._notify if sites else None,
            )

    def _encoder(self, role: str) -> Encoder | None:
        if role == "randomised":
            encoder = self._inputs.encoder if self._inputs.random_baseline else None
            return encoder.randomised(seed=0) if isinstance(encoder, Randomisable) else None
        return self._inputs.against if role == "against" else self._inputs.encoder
