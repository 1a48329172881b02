"""A recording: activations of one encoder on one corpus at named sites, one array per input, with the alignment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bertology.arrays import Array
from bertology.corpus.corpus import Corpus
from bertology.errors import Refusal
from bertology.lazy import torch
from bertology.recording.sites import ReducedSite, Site, needs_gradient, unpadded_shape

if TYPE_CHECKING:
    from bertology.encoder.token_batch import RecordedInput
    from bertology.recording.from_arrays import InputWords


@dataclass(frozen=True)
class EncoderSummary:
    """The description of a recorded encoder: enough to read a recording without the model; see `Encoder`."""

    name: str
    fingerprint: str
    layers: int
    heads: int
    width: int
    causal: bool = False
    task_heads: tuple[str, ...] = ()
    attention_windows: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class Recording:
    """Inputs in corpus order, and one array per input for each site.

    `config` are the fields of `RecordingConfig` that the numbers depend on; `counts` are the inputs skipped or
    truncated and the tokens not aligned; `incomplete_sites` are sites with some shards missing.
    """

    encoder: EncoderSummary
    corpus: Corpus
    inputs: tuple[RecordedInput, ...]
    sites: Mapping[str, Sequence[Array]]
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    incomplete_sites: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def from_arrays(
        cls,
        tokens: Sequence[Sequence[str]],
        *,
        attention: Sequence[Array] | None = None,
        hidden: Sequence[Array] | None = None,
        words: Sequence[InputWords | None] | None = None,
        name: str = "arrays",
        corpus: str = "arrays",
        causal: bool | None = None,
        attention_windows: Sequence[int | None] = (),
        renormalise: bool = False,
    ) -> Recording:
        """A recording of a model that cannot be run here, from tokens and arrays; see `recording.from_arrays`."""
        from bertology.recording.from_arrays import from_arrays

        return from_arrays(
            tokens,
            attention=attention,
            hidden=hidden,
            words=words,
            name=name,
            corpus=corpus,
            causal=causal,
            attention_windows=attention_windows,
            renormalise=renormalise,
        )

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, site: str | Site) -> Sequence[Array]:
        """One array per input, in corpus order."""
        key = site if isinstance(site, str) else site.storage_key
        if key in self.incomplete_sites:
            raise Refusal(
                f"The recording of {self.encoder.name} has only {self.incomplete_sites[key]} of the site {key!r}",
                "a complete recording",
                "Run the same `bertology record` command again: it resumes where it stopped",
            )
        if key not in self.sites:
            available = ", ".join(sorted(self.sites)) or "none"
            raise Refusal(
                f"The recording of {self.encoder.name} has no site {key!r} (it has: {available})",
                "a recording of that site",
                "Record it again with that site named in --sites",
            )
        return self.sites[key]

    def stack(self, site: str | Site) -> Array:
        """(input, ...) for sites whose arrays have the same shape, such as reduced sites without a token axis."""
        return np.stack(self[site])

    def with_sites(self, sites: Sequence[Site]) -> Recording:
        """The recording with those of `sites` added that can be computed from its raw sites.

        These are reduced sites if attention was recorded, and hidden states of words if those of tokens were.
        """
        missing = [s for s in sites if s.storage_key not in self.sites]
        derived: dict[str, Sequence[Array]] = {}
        if "attention" in self.sites:
            reduced = [
                s for s in missing if isinstance(s, ReducedSite) and not needs_gradient(s) and not s.needs_values
            ]
            derived |= {
                site.storage_key: [_reduce_recorded(site, self, index) for index in range(len(self))]
                for site in reduced
            }
        if "hidden" in self.sites and any(site.name == "hidden.words" for site in missing):
            from bertology.statistics.word_states import WordStates

            derived["hidden.words"] = WordStates(self.inputs, self.sites["hidden"])
        return replace(self, sites={**self.sites, **derived}) if derived else self

    def summary(self) -> dict[str, Any]:
        """Model, corpus, configuration and counts, for the provenance of a result."""
        encoder = self.encoder
        return {
            "model": {
                "name": encoder.name,
                "fingerprint": encoder.fingerprint,
                "layers": encoder.layers,
                "heads": encoder.heads,
            },
            "corpus": self.corpus.summary(),
            "inputs": len(self),
            "config": dict(self.config),
            "counts": dict(self.counts),
        }


def _reduce_recorded(site: ReducedSite, recording: Recording, index: int) -> Array:
    from bertology.encoder.attention_hook import LayerActivations
    from bertology.encoder.token_batch import TokenBatch

    batch = TokenBatch([recording.inputs[index]])
    prepared = site.prepare(batch) if site.prepare else None
    attention = torch.from_numpy(np.array(recording["attention"][index], np.float32))
    if site.across_layers:
        heads = site.reduce(LayerActivations(0, attention.flatten(0, 1)[None]), batch, prepared)[0]
        values = heads.unflatten(0, attention.shape[:2]).numpy()
    else:
        layers = [
            site.reduce(LayerActivations(layer, weights[None]), batch, prepared)[0]
            for layer, weights in enumerate(attention)
        ]
        values = torch.stack(layers).numpy()
    axes = ("layer", "head", *site.axes)
    return values[tuple(slice(size) for size in unpadded_shape(axes, values.shape, batch.inputs[0].tokens))]
