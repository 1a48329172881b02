"""What one encoder did on one corpus at named sites: per-sentence arrays without padding, and their alignment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bertology.corpus.corpus import Corpus
from bertology.errors import Refusal
from bertology.recording.entry import Entry
from bertology.recording.shards import Array
from bertology.recording.sites import ReducedSite, Site, needs_gradient, shape_of
from bertology.recording.word_states import WordStates

if TYPE_CHECKING:
    from bertology.recording.foreign import Words


@dataclass(frozen=True)
class EncoderCard:
    """Who was recorded: enough to read a recording without the model; see `Encoder` for `causal` and `reach`."""

    name: str
    fingerprint: str
    layers: int
    heads: int
    width: int
    causal: bool = False
    outputs: tuple[str, ...] = ()
    reach: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class Recording:
    """Entries in corpus order, and for each site one array an entry.

    `policy` is how it was recorded (precision, what was done with over-long inputs, objective, seed); `counts` is what
    was skipped, cut or could not be aligned; `unfinished` names sites of which only some shards are there.
    """

    encoder: EncoderCard
    corpus: Corpus
    entries: tuple[Entry, ...]
    sites: Mapping[str, Sequence[Array]]
    policy: Mapping[str, Any] = field(default_factory=dict[str, Any])
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    unfinished: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def from_arrays(
        cls,
        tokens: Sequence[Sequence[str]],
        *,
        attention: Sequence[Array] | None = None,
        hidden: Sequence[Array] | None = None,
        words: Sequence[Words | None] | None = None,
        name: str = "arrays",
        corpus: str = "arrays",
        causal: bool | None = None,
        reach: Sequence[int | None] = (),
        renormalise: bool = False,
    ) -> Recording:
        """A recording of a model one cannot run, from one list of tokens and one array an input; see `foreign`."""
        from bertology.recording.foreign import from_arrays

        return from_arrays(
            tokens,
            attention=attention,
            hidden=hidden,
            words=words,
            name=name,
            corpus=corpus,
            causal=causal,
            reach=reach,
            renormalise=renormalise,
        )

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, site: str | Site) -> Sequence[Array]:
        """One array an entry, in corpus order."""
        identity = site if isinstance(site, str) else site.identity
        if identity in self.unfinished:
            raise Refusal(
                f"The recording of {self.encoder.name} has only {self.unfinished[identity]} of the site {identity!r}",
                "a finished recording",
                "Run the same `bertology record` command again: it goes on where it stopped",
            )
        if identity not in self.sites:
            have = ", ".join(sorted(self.sites)) or "nothing"
            raise Refusal(
                f"The recording of {self.encoder.name} has no site {identity!r}; it has {have}",
                "a recording of that site",
                "Record it again with that site named in --sites",
            )
        return self.sites[identity]

    def stacked(self, site: str | Site) -> Array:
        """(entry, ...) for sites whose arrays all have one shape, such as reduced sites without a piece axis."""
        return np.stack(self[site])

    def with_derived(self, sites: Sequence[Site]) -> Recording:
        """The same recording with those of `sites` that are missing and can be computed from its raw sites.

        Those are the reduced sites where attention was recorded, and the hidden states of words where those of pieces
        were.
        """
        missing = [s for s in sites if s.identity not in self.sites]
        found: dict[str, Sequence[Array]] = {}
        if "attention" in self.sites:
            derived = [s for s in missing if isinstance(s, ReducedSite) and not needs_gradient(s) and not s.vectors]
            found |= {site.identity: [_reduce(site, self, index) for index in range(len(self))] for site in derived}
        if "hidden" in self.sites and any(site.name == "hidden.words" for site in missing):
            found["hidden.words"] = WordStates(self.entries, self.sites["hidden"])
        return replace(self, sites={**self.sites, **found}) if found else self

    def summary(self) -> dict[str, Any]:
        """Model, corpus, policy and counts: what goes into a result's provenance."""
        card = self.encoder
        return {
            "model": {"name": card.name, "fingerprint": card.fingerprint, "layers": card.layers, "heads": card.heads},
            "corpus": self.corpus.summary(),
            "entries": len(self),
            "policy": dict(self.policy),
            "counts": dict(self.counts),
        }


def _reduce(site: ReducedSite, recording: Recording, index: int) -> Array:
    import torch

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame

    frame = Frame([recording.entries[index]])
    prepared = site.prepare(frame) if site.prepare else None
    maps = torch.from_numpy(np.array(recording["attention"][index], np.float32))
    if site.whole:
        heads = site.reduce(LayerActivations(0, maps.flatten(0, 1)[None]), frame, prepared)[0]
        values = heads.unflatten(0, maps.shape[:2]).numpy()
    else:
        layers = [site.reduce(LayerActivations(i, layer[None]), frame, prepared)[0] for i, layer in enumerate(maps)]
        values = torch.stack(layers).numpy()
    axes = ("layer", "head", *site.axes)
    return values[tuple(slice(n) for n in shape_of(axes, values.shape, frame.entries[0].pieces))]
