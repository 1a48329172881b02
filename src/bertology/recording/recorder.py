"""`record`: one pass of an encoder over a corpus that feeds every site asked for, raw and reduced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.recording.golds import Gold, gold_for
from bertology.recording.opening import keep_description, kept_plan
from bertology.recording.plan import Plan, make_plan
from bertology.recording.policy import Long as Long
from bertology.recording.policy import Policy
from bertology.recording.recording import EncoderCard, Recording
from bertology.recording.shards import Array, ShardReader
from bertology.recording.sites import HIDDEN, Site, needs_gradient, resolve, sees_attention
from bertology.recording.store import Shelf, address

Progress = Callable[[int, int], None]
Notify = Callable[[str], None]


def record(
    encoder: Encoder,
    corpus: Corpus,
    sites: Iterable[str | Site],
    *,
    policy: Policy = Policy(),
    store: Path | None = None,
    folder: Path | None = None,
    progress: Progress | None = None,
    notify: Notify | None = None,
) -> Recording:
    """What `encoder` does on `corpus` at `sites`.

    With a `store` (a root folder) shards are kept under their content address, finished ones are never recomputed, and
    sites recorded earlier are shared; `folder` names the recording's own folder instead. Without either the arrays
    stay in memory. `progress` is called with (pieces done, pieces in all).
    """
    wanted = resolve(sites, encoder.outputs)
    refuse_impossible(encoder, wanted, policy)
    card = encoder_card(encoder)
    if store is None and folder is None:
        plan = make_plan(encoder, corpus, policy)
        found: dict[str, Any] = _in_memory(_pass(encoder, corpus, plan, policy, wanted), wanted, progress)
    else:
        identity = {"encoder": card.fingerprint, "corpus": corpus.fingerprint, "policy": policy.addressed()}
        shelf = Shelf(folder or Path(store or ".") / address(identity))
        plan = kept_plan(shelf, identity, corpus)
        if plan is None:
            plan = keep_description(shelf, identity, card, corpus, make_plan(encoder, corpus, policy), policy)
        found = _Shelved(_pass(encoder, corpus, plan, policy, wanted), wanted, shelf).found(progress, notify)
    return Recording(card, corpus, plan.entries, found, policy.addressed(), plan.counts)


def encoder_card(encoder: Encoder) -> EncoderCard:
    """The encoder's description without the encoder."""
    return EncoderCard(
        encoder.name,
        encoder.fingerprint,
        encoder.layers,
        encoder.heads,
        encoder.width,
        encoder.causal,
        tuple(sorted(encoder.outputs)),
        encoder.reach,
    )


class _Pass(NamedTuple):
    """What is recorded, and how; `gold` is what should come out, where the objective asks for it."""

    encoder: Encoder
    plan: Plan
    policy: Policy
    gold: Gold | None


def _pass(encoder: Encoder, corpus: Corpus, plan: Plan, policy: Policy, sites: Sequence[Site]) -> _Pass:
    asked = policy.objective == "gold" and any(needs_gradient(site) for site in sites)
    return _Pass(encoder, plan, policy, gold_for(encoder, corpus, plan.entries) if asked else None)


def _in_memory(whole: _Pass, sites: Sequence[Site], progress: Progress | None) -> dict[str, list[Array]]:
    plan = whole.plan
    found: dict[str, list[Any]] = {site.identity: [None] * len(plan.entries) for site in sites}
    meter = _Meter(plan, range(len(plan.shards)), progress)
    for shard in plan.shards:
        for batch in shard:
            found_here = _record_batch(whole, batch, sites, watched=_watched(sites))
            for identity, arrays in found_here.items():
                for index, array in zip(batch, arrays, strict=True):
                    found[identity][index] = array
            meter.add(batch)
    return found


class _Shelved:
    """Records into a folder what is not there yet, and again what turns out to be broken."""

    def __init__(self, whole: _Pass, sites: Sequence[Site], shelf: Shelf) -> None:
        self._whole = whole
        self._plan = whole.plan
        self._sites = sites
        self._shelf = shelf

    def found(self, progress: Progress | None, notify: Notify | None) -> dict[str, ShardReader]:
        """A reader for each site, every shard being there."""
        plan, shelf = self._plan, self._shelf
        for site in self._sites:
            shelf.tidy(site.identity)
        done = {site.identity: shelf.shards(site.identity) for site in self._sites}
        numbers = range(len(plan.shards))
        missing = {number: [s for s in self._sites if number not in done[s.identity]] for number in numbers}
        todo = [number for number in numbers if missing[number]]
        if notify:
            for line in _news(plan, shelf, len(plan.shards) - len(todo)):
                notify(line)
        meter = _Meter(plan, todo, progress)
        for number in todo:
            for identity, file in self._record_shard(number, missing[number], meter):
                done[identity][number] = file
        return {site.identity: ShardReader(done[site.identity], plan.order, self._mender(site)) for site in self._sites}

    def _record_shard(self, number: int, sites: Sequence[Site], meter: _Meter) -> Iterator[tuple[str, Path]]:
        parts: dict[str, list[Array]] = {site.identity: [] for site in sites}
        for batch in self._plan.shards[number]:
            watched = _watched(self._sites)
            found = _record_batch(self._whole, batch, sites, watched=watched)
            for identity, arrays in found.items():
                parts[identity].extend(arrays)
            meter.add(batch)
        for identity in list(parts):
            yield identity, self._shelf.write_shard(identity, number, self._plan.order[number], parts.pop(identity))

    def _mender(self, site: Site) -> Callable[[int, Path], Path]:
        def mend(number: int, broken: Path) -> Path:
            with suppress(OSError):
                broken.unlink(missing_ok=True)
            return dict(self._record_shard(number, [site], _Meter(self._plan, [number], None)))[site.identity]

        return mend


def _news(plan: Plan, shelf: Shelf, finished: int) -> Iterator[str]:
    if finished == len(plan.shards):
        yield f"already recorded: {len(plan.entries)} inputs at {shelf.path}"
    elif finished:
        yield f"resuming: {finished} of {len(plan.shards)} shards are recorded at {shelf.path}"


def _record_batch(
    whole: _Pass, batch: Sequence[int], sites: Sequence[Site], *, watched: bool
) -> dict[str, list[Array]]:
    """The arrays of each site for a batch; `watched` passes go through the same arithmetic whatever the sites."""
    import torch

    from bertology.recording.catch import Catch
    from bertology.recording.frame import Frame
    from bertology.recording.objectives import objective_for

    encoder, plan, policy, gold = whole
    entries = [plan.entries[index] for index in batch]
    plain = [site for site in sites if not needs_gradient(site)]
    graded = [site for site in sites if needs_gradient(site)]
    found: dict[str, list[Array]] = {}
    if plain:
        with torch.inference_mode():
            frame = Frame(entries, encoder.device)
            catch = Catch(frame, plain, encoder.layers, half=policy.half)
            output = encoder.run(frame.batch, on_layer=catch.see if watched else None, hidden=catch.wants_hidden)
            found |= catch.finished(output)
    if graded:
        frame = Frame(entries, encoder.device)  # a new one: tensors made in inference mode cannot be differentiated
        fed, objective = objective_for(encoder, policy.objective, frame, policy.seed, gold)
        catch = Catch(Frame(entries, encoder.device, fed), graded, encoder.layers, half=policy.half)
        found |= catch.finished(encoder.run(fed, on_layer=catch.see, objective=objective))
    return found


def _watched(sites: Sequence[Site]) -> bool:
    """Whether a pass must show its attention.

    Decided for all sites of a call, also where only some of them are left to do: attention that is shown is computed
    otherwise than attention that is not, and the last digits of hidden states would tell which shards were redone.
    """
    return any(sees_attention(site) and not needs_gradient(site) for site in sites)


class _Meter:
    """Counts pieces done for the progress bar."""

    def __init__(self, plan: Plan, shards: Iterable[int], progress: Progress | None) -> None:
        self.plan = plan
        self.progress = progress
        self.done = 0
        self.total = sum(len(plan.entries[i].pieces) for s in shards for batch in plan.shards[s] for i in batch)
        if progress:
            progress(0, self.total)

    def add(self, batch: Sequence[int]) -> None:
        self.done += sum(len(self.plan.entries[i].pieces) for i in batch)
        if self.progress:
            self.progress(self.done, self.total)


def refuse_impossible(encoder: Encoder, sites: Sequence[Site], policy: Policy) -> None:
    """Refuse sites that the model cannot have: heads, attention or gradients that are not there."""
    if any(needs_gradient(site) for site in sites):
        from bertology.recording.objectives import head_for

        head_for(encoder, policy.objective)
    for site in sites:
        head = site.name.removeprefix("logits.")
        if site.name.startswith("logits.") and head not in encoder.outputs:
            have = ", ".join(sorted(encoder.outputs)) or "none"
            raise Refusal(
                f"{encoder.name} has no {head} head (its heads: {have})",
                "a model with that head",
                "Choose a model that was saved with it, or leave the site out",
            )
        if encoder.layers == 0 and not site.name.startswith("logits.") and site.name not in HIDDEN:
            raise Refusal(
                f"{encoder.name} is a table of static vectors and has no {site.name}",
                "an encoder with attention",
                "Give a transformer with --model, or record only `hidden`",
            )
