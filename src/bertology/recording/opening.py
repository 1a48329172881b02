"""A recording's description on disk: written before its first shard, read back without the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bertology.corpus.corpus import Corpus, Input
from bertology.corpus.storage import item_from_json, item_to_json, sentence_from_json, sentence_to_json
from bertology.encoder.pieces import Pieces
from bertology.errors import Refusal
from bertology.recording.entry import Entry
from bertology.recording.plan import Plan
from bertology.recording.policy import Policy
from bertology.recording.recording import EncoderCard, Recording
from bertology.recording.shards import ShardReader
from bertology.recording.store import FORMAT, MANIFEST, Shelf

CORPUS = "corpus.jsonl"
ENTRIES = "entries.jsonl"
ARRAYS = ("ids", "types", "part", "word", "special")
COUNTS = ("words", "straddling", "unknown")


def kept_plan(shelf: Shelf, identity: Mapping[str, Any], corpus: Corpus) -> Plan | None:
    """The plan a folder goes by, read back without tokenising; None where nothing is recorded there yet.

    A recording begun with other batches keeps them, so that its finished shards stay good. A folder that holds
    another recording is refused.
    """
    manifest = shelf.manifest()
    if manifest is None:
        return None
    if manifest["identity"] != identity:
        raise Refusal(
            f"{shelf.path} already holds a recording of {manifest['encoder']['name']} on {manifest['corpus']['name']} "
            "with another model, corpus or policy",
            "an empty folder, or the folder of this very recording",
            "Choose another folder with -o, or delete that one",
        )
    return _plan(shelf, manifest, corpus)


def keep_description(
    shelf: Shelf, identity: Mapping[str, Any], card: EncoderCard, corpus: Corpus, plan: Plan, policy: Policy
) -> Plan:
    """Write manifest, entries and corpus; returns the plan that counts, another process's where it was faster."""
    digests = {
        CORPUS: shelf.write_lines(CORPUS, (item_to_json(item) for item in corpus)),
        ENTRIES: shelf.write_lines(ENTRIES, (_entry_to_json(entry, corpus) for entry in plan.entries)),
    }
    written = shelf.write_manifest(
        {
            "format": FORMAT,
            "identity": identity,
            "encoder": asdict(card),
            "corpus": {"name": corpus.name, "format": corpus.format},
            "policy": policy.addressed(),
            "counts": plan.counts,
            "digests": digests,
            "shards": plan.shards,
        }
    )
    return Plan(plan.entries, _shards(written), written["counts"])


def open_recording(path: str | Path) -> Recording:
    """The recording in a folder, with every site that is complete there; no model is loaded.

    The folder is one that `bertology record` wrote, or one of .npz files from elsewhere (see `npz`).
    """
    shelf = Shelf(Path(path))
    manifest = shelf.manifest()
    if manifest is None:
        from bertology.recording.npz import has_arrays, open_arrays

        if has_arrays(shelf.path):
            return open_arrays(shelf.path)
        raise Refusal(
            f"{path} holds no recording (there is no {MANIFEST} and no .npz file)",
            "a folder made by `bertology record`, or a folder of .npz files",
            "Make one with `bertology record MODEL CORPUS --sites attention -o DIR`",
        )
    items = tuple(item_from_json(line) for line in shelf.lines(CORPUS, manifest["digests"][CORPUS]))
    corpus = Corpus(items, name=manifest["corpus"]["name"], format=manifest["corpus"]["format"])
    plan = _plan(shelf, manifest, corpus)
    complete: dict[str, ShardReader] = {}
    unfinished: dict[str, str] = {}
    for site in shelf.sites():
        files = shelf.shards(site)
        if all(number in files for number in range(len(plan.shards))):
            complete[site] = ShardReader(files, plan.order, _refuse_broken)
        else:
            unfinished[site] = f"{len(files)} of {len(plan.shards)} shards"
    card: dict[str, Any] = dict(manifest["encoder"])
    card["outputs"] = tuple(card["outputs"])
    card["reach"] = tuple(card.get("reach", ()))  # recordings made before layers told it have none
    encoder = EncoderCard(**card)
    return Recording(encoder, corpus, plan.entries, complete, manifest["policy"], plan.counts, unfinished)


def _refuse_broken(number: int, file: Path) -> Path:
    raise Refusal(
        f"{file} is damaged: its bytes are not those that were recorded",
        "the digest in its name",
        f"Delete that file and record again with the same model and corpus: only shard {number} will be redone",
    )


def _plan(shelf: Shelf, manifest: Mapping[str, Any], corpus: Corpus) -> Plan:
    entries = tuple(_entry_from_json(line, corpus) for line in shelf.lines(ENTRIES, manifest["digests"][ENTRIES]))
    return Plan(entries, _shards(manifest), manifest["counts"])


def _shards(manifest: Mapping[str, Any]) -> tuple[tuple[tuple[int, ...], ...], ...]:
    return tuple(tuple(tuple(batch) for batch in shard) for shard in manifest["shards"])


def _entry_to_json(entry: Entry, corpus: Corpus) -> dict[str, Any]:
    pieces = entry.pieces
    data: dict[str, Any] = {"at": [entry.item, entry.variant, entry.window], "tokens": pieces.tokens}
    data |= {name: getattr(pieces, name) for name in COUNTS}
    data |= {name: getattr(pieces, name).tolist() for name in ARRAYS}
    if entry.input != corpus[entry.item].inputs[entry.variant]:
        data["parts"] = [sentence_to_json(part) for part in entry.input.parts]
    return data


def _entry_from_json(data: Mapping[str, Any], corpus: Corpus) -> Entry:
    item, variant, window = data["at"]
    parts = data.get("parts")
    shown = Input(tuple(sentence_from_json(p) for p in parts)) if parts else corpus[item].inputs[variant]
    fields: dict[str, Any] = {name: np.asarray(data[name], np.int32) for name in ARRAYS}
    fields |= {name: data[name] for name in COUNTS}
    pieces = Pieces(tokens=tuple(data["tokens"]), **fields)
    return Entry(item, variant, window, shown, pieces)
