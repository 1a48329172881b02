"""A recording: activations of one encoder on one corpus at named sites, one array per input, with the alignment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bertology.arrays import Array, LazySequence
from bertology.corpus.corpus import Corpus
from bertology.errors import Refusal
from bertology.lazy import torch
from bertology.recording.sites import RAW_SITES, ReducedSite, Site, needs_gradient, reductions, unpadded_shape
from bertology.store_paths import StorePath, local_folder, store_path

if TYPE_CHECKING:
    from bertology.encoder.token_batch import RecordedInput
    from bertology.encoder.tokens import SpecialToken
    from bertology.recording.from_arrays import InputWords
    from bertology.recording.from_attentions import TokenConverter


IMPORTED_SITES = {"attention": "attention", "hidden": "hidden", "hidden.words": "hidden"}
"""Sites that recordings of other programs can have, and the arrays they come from."""


class ComputedArrays(LazySequence[Array]):
    """One array per input, computed from other sites when it is first read, and kept."""

    def __init__(self, length: int, compute: Callable[[int], Array]) -> None:
        self._compute = compute
        self._arrays: list[Array | None] = [None] * length

    def __len__(self) -> int:
        return len(self._arrays)

    def load(self, index: int) -> Array:
        """The array of one input."""
        array = self._arrays[index]
        if array is None:
            array = self._arrays[index] = self._compute(index)
        return array


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
    truncated and the tokens not aligned; `incomplete_sites` are sites with some shards missing; `store` is the root
    folder of the store it was recorded into, if any.
    """

    encoder: EncoderSummary
    corpus: Corpus
    inputs: Sequence[RecordedInput]
    sites: Mapping[str, Sequence[Array]]
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    incomplete_sites: Mapping[str, str] = field(default_factory=dict[str, str])
    store: StorePath | None = None

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
        special_tokens: Mapping[str, SpecialToken] | None = None,
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
            special_tokens=special_tokens or {},
        )

    @classmethod
    def from_attentions(
        cls,
        attentions: Sequence[Any],
        tokens: Any,
        *,
        tokenizer: TokenConverter | None = None,
        attention_mask: Any = None,
        hidden_states: Sequence[Any] | None = None,
        words: Sequence[InputWords | None] | None = None,
        name: str = "attentions",
        corpus: str = "attentions",
        causal: bool | None = None,
        attention_windows: Sequence[int | None] = (),
        renormalise: bool = False,
    ) -> Recording:
        """A recording from what transformers returns with `output_attentions=True`; see `recording.from_attentions`."""
        from bertology.recording.from_attentions import from_attentions

        return from_attentions(
            attentions,
            tokens,
            tokenizer=tokenizer,
            attention_mask=attention_mask,
            hidden_states=hidden_states,
            words=words,
            name=name,
            corpus=corpus,
            causal=causal,
            attention_windows=attention_windows,
            renormalise=renormalise,
        )

    def save(self, folder: str | Path) -> Path:
        """Write attention, hidden states, tokens, words and annotations to a folder that --recording reads."""
        from bertology.recording.npz_files import save_arrays

        return save_arrays(self, local_folder(store_path(folder), "Recording.save"))

    def __repr__(self) -> str:
        inputs = "1 input" if len(self) == 1 else f"{len(self)} inputs"
        sites = ", ".join(self.sites)
        return f"Recording({self.encoder.name!r} on {self.corpus.name!r}, {inputs}, sites: {sites})"

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
            raise self._missing_site_refusal(site, key)
        return self.sites[key]

    def _missing_site_refusal(self, site: str | Site, key: str) -> Refusal:
        """What is missing, why the recorded sites do not give it, and the command that records it."""
        declared = next((s for s in (*reductions().values(), *RAW_SITES.values()) if s.storage_key == key), None)
        known = declared if isinstance(site, str) else site
        recorded = sorted(name for name, arrays in self.sites.items() if not isinstance(arrays, ComputedArrays))
        available = ", ".join(recorded) or "none"
        reason, needed = "", key
        if isinstance(known, ReducedSite):
            from_forward_pass = needs_gradient(known) or known.needs_values
            quantity = "gradients" if needs_gradient(known) else "value vectors" if known.needs_values else "attention"
            reason = f", which is computed from {quantity}"
            needed = ("" if declared is None else declared.name) if from_forward_pass else "attention"
        if not needed or (self.config.get("source") == "arrays" and needed not in IMPORTED_SITES):
            remedy = "Only the model itself gives it: use --model and --corpus instead of --recording"
        elif self.config.get("source") == "arrays":
            array = IMPORTED_SITES[needed]
            remedy = f"Add the array `{array}` to the .npz files, or use --model and --corpus instead of --recording"
        else:
            remedy = (
                "Repeat the command that made the recording, with this site: "
                f"`bertology record {self.encoder.name} {self.corpus.name} --sites {needed} -o DIR`"
            )
        return Refusal(
            f"The recording of {self.encoder.name} has no site {key!r}{reason} (it has: {available})",
            f"a recording of {needed or key}",
            remedy,
        )

    def stack(self, site: str | Site) -> Array:
        """(input, ...) for sites whose arrays have the same shape, such as reduced sites without a token axis."""
        return np.stack(self[site])

    def with_sites(self, sites: Sequence[Site]) -> Recording:
        """The recording with those of `sites` added that can be computed from its raw sites, when they are first read.

        These are reduced sites if attention was recorded, and hidden states of words if those of tokens were.
        """
        missing = [s for s in sites if s.storage_key not in self.sites]
        derived: dict[str, Sequence[Array]] = {}
        if "attention" in self.sites:
            reduced = [
                s for s in missing if isinstance(s, ReducedSite) and not needs_gradient(s) and not s.needs_values
            ]
            derived |= {
                site.storage_key: ComputedArrays(len(self), partial(_reduce_recorded, site, self)) for site in reduced
            }
        if "hidden" in self.sites and any(site.name == "hidden.words" for site in missing):
            from bertology.statistics.word_states import WordStates

            derived["hidden.words"] = WordStates(self.inputs, self.sites["hidden"])
        return replace(self, sites={**self.sites, **derived}) if derived else self

    def select_examples(self, example_indices: Sequence[int]) -> Recording:
        """The recording of these examples only, in this order.

        Words and tokens are counted again; what was skipped or truncated is counted as in the whole recording.
        """
        from bertology.recording.plan import count_alignment

        new_indices = {old: new for new, old in enumerate(example_indices)}
        kept = [index for index, recorded in enumerate(self.inputs) if recorded.example_index in new_indices]
        kept.sort(key=lambda index: new_indices[self.inputs[index].example_index])

        def select(arrays: Sequence[Array]) -> Sequence[Array]:
            return ComputedArrays(len(kept), lambda index: arrays[kept[index]])

        inputs = tuple(
            replace(self.inputs[index], example_index=new_indices[self.inputs[index].example_index]) for index in kept
        )
        counts, all_counts = Counter[str](inputs=len(kept)), Counter[str](inputs=len(self))
        count_alignment(inputs, counts)
        count_alignment(self.inputs, all_counts)
        return replace(
            self,
            corpus=replace(self.corpus, examples=tuple(self.corpus[index] for index in example_indices)),
            inputs=inputs,
            sites={name: select(arrays) for name, arrays in self.sites.items()},
            counts={
                name: count
                for name in {**self.counts, **counts}
                if (count := counts[name] if name in all_counts else self.counts[name])
            },
        )

    def first_examples(self, limit: int) -> Recording:
        """The recording of at most the first `limit` examples."""
        return self if limit >= len(self.corpus) else self.select_examples(range(limit))

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


def shared_inputs(first: Recording, second: Recording) -> tuple[Recording, Recording]:
    """Both recordings with only the inputs that both have, in the order of the first.

    An encoder with another tokeniser or maximum length may have skipped other inputs.
    """
    if [recorded.key for recorded in first.inputs] == [recorded.key for recorded in second.inputs]:
        return first, second
    positions = {recorded.key: index for index, recorded in enumerate(second.inputs)}
    kept = [index for index, recorded in enumerate(first.inputs) if recorded.key in positions]
    return _select_inputs(first, kept), _select_inputs(second, [positions[first.inputs[index].key] for index in kept])


def _select_inputs(recording: Recording, indices: Sequence[int]) -> Recording:
    def select(arrays: Sequence[Array]) -> Sequence[Array]:
        return ComputedArrays(len(indices), lambda index: arrays[indices[index]])

    sites = {name: select(arrays) for name, arrays in recording.sites.items()}
    return replace(recording, inputs=tuple(recording.inputs[index] for index in indices), sites=sites)


def check_same_inputs(first: Recording, second: Recording) -> None:
    """Refuse two recordings whose inputs differ in number or in their words."""
    names = f"{first.encoder.name} on {first.corpus.name} and {second.encoder.name} on {second.corpus.name}"
    expected, remedy = "two recordings of the same inputs in the same order", "Record both models on the same corpus"
    if len(first) != len(second):
        raise Refusal(f"The recordings of {names} have {len(first)} and {len(second)} inputs", expected, remedy)
    for index, (one, other) in enumerate(zip(first.inputs, second.inputs, strict=True)):
        if one.text.words != other.text.words:
            raise Refusal(f"The recordings of {names} differ in the words of input {index + 1}", expected, remedy)


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
