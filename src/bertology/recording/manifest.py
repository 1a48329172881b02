"""The description of a recording on disk: written before its first shard, readable without the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bertology.corpus.corpus import Corpus
from bertology.corpus.example_json import example_to_json, sentence_to_json
from bertology.corpus.stored_examples import parse_example
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.folder_lock import folder_lock
from bertology.input_files import check_folder, check_path
from bertology.recording.array_check import array_check
from bertology.recording.plan import RecordingConfig, RecordingPlan
from bertology.recording.recording import EncoderSummary, Recording
from bertology.recording.shards import ShardReader
from bertology.recording.store import FORMAT_VERSION, MANIFEST, RecordingFolder
from bertology.recording.stored_description import TOKEN_ARRAYS, TOKEN_COUNTS, parse_input
from bertology.store_paths import StorePath, store_path

CORPUS_FILE = "corpus.jsonl"
INPUTS_FILE = "inputs.jsonl"
INDICES = ("example_index", "input_index", "window_index")


def load_plan(folder: RecordingFolder, key: Mapping[str, Any], corpus: Corpus) -> RecordingPlan | None:
    """The plan of the recording in a folder, read without tokenising; None if nothing is recorded there.

    The plan on disk is used even if new batches would differ, so that finished shards stay valid. A folder that holds
    another recording is refused.
    """
    manifest = folder.manifest()
    if manifest is None:
        return None
    _refuse_other_recording(folder, manifest, key)
    return _read_plan(folder, manifest, corpus)


def _refuse_other_recording(folder: RecordingFolder, manifest: Mapping[str, Any], key: Mapping[str, Any]) -> None:
    if manifest["key"] != key:
        raise Refusal(
            f"{folder.path} holds a recording of {manifest['encoder']['name']} on {manifest['corpus']['name']} "
            "with another model, corpus or configuration",
            "an empty folder, or the folder of the same recording",
            "Choose another folder with -o, or delete that one",
        )


def save_description(
    folder: RecordingFolder,
    key: Mapping[str, Any],
    summary: EncoderSummary,
    corpus: Corpus,
    plan: RecordingPlan,
    config: RecordingConfig,
) -> RecordingPlan:
    """Write manifest, inputs and corpus, unless another process was first; returns the plan on disk.

    The folder is locked meanwhile: of several processes one writes, and the others find its recording, which is the
    same one or is refused. No shard is written before.
    """
    with folder_lock(folder.path):
        existing = load_plan(folder, key, corpus)
        return existing if existing is not None else _write_description(folder, key, summary, corpus, plan, config)


def _write_description(
    folder: RecordingFolder,
    key: Mapping[str, Any],
    summary: EncoderSummary,
    corpus: Corpus,
    plan: RecordingPlan,
    config: RecordingConfig,
) -> RecordingPlan:
    digests = {
        CORPUS_FILE: folder.write_lines(CORPUS_FILE, (example_to_json(example) for example in corpus)),
        INPUTS_FILE: folder.write_lines(INPUTS_FILE, (_input_to_json(recorded, corpus) for recorded in plan.inputs)),
    }
    written = folder.write_manifest(
        {
            "format": FORMAT_VERSION,
            "key": key,
            "encoder": asdict(summary),
            "corpus": {"name": corpus.name, "format": corpus.format},
            "config": config.key_fields(),
            "counts": plan.counts,
            "digests": digests,
            "shards": plan.shards,
        }
    )
    # Without a lock, as on some network file systems, another process may have been first all the same.
    _refuse_other_recording(folder, written, key)
    return RecordingPlan(plan.inputs, _manifest_shards(written), written["counts"])


def open_recording(path: str | StorePath) -> Recording:
    """The recording in a folder, or at an address such as s3://bucket/folder, with all complete sites.

    No model is loaded. The folder was written by `bertology record`, or is a local one that holds .npz files from
    another program (see `npz_files`).
    """
    folder = RecordingFolder(store_path(path))
    if isinstance(folder.path, Path):
        check_folder(check_path(folder.path))
    manifest = folder.manifest()
    if manifest is None:
        from bertology.recording.npz_files import has_arrays, open_arrays
        from bertology.recording.stream_parts import open_stream

        streamed = open_stream(folder.path)
        if streamed is not None:
            return streamed
        if isinstance(folder.path, Path) and has_arrays(folder.path):
            return open_arrays(folder.path)
        raise Refusal(
            f"{path} holds no recording (neither {MANIFEST} nor .npz files)",
            "a folder written by `bertology record`, or a folder of .npz files",
            "Create one with `bertology record MODEL CORPUS --sites attention -o DIR`",
        )
    examples = tuple(folder.read_lines(CORPUS_FILE, manifest["digests"][CORPUS_FILE], parse_example))
    corpus = Corpus(examples, name=manifest["corpus"]["name"], format=manifest["corpus"]["format"])
    plan = _read_plan(folder, manifest, corpus)
    encoder = EncoderSummary(
        **manifest["encoder"] | {name: tuple(manifest["encoder"][name]) for name in ("task_heads", "attention_windows")}
    )
    complete: dict[str, ShardReader] = {}
    incomplete: dict[str, str] = {}
    for site in folder.sites():
        files = folder.shards(site)
        if all(index in files for index in range(len(plan.shards))):
            check = array_check(site, encoder, plan.inputs)
            complete[site] = ShardReader(files, plan.order, _refuse_corrupt, check)
        else:
            incomplete[site] = f"{len(files)} of {len(plan.shards)} shards"
    return Recording(encoder, corpus, plan.inputs, complete, manifest["config"], plan.counts, incomplete)


def _refuse_corrupt(shard_index: int, file: StorePath) -> StorePath:
    raise Refusal(
        f"{file} is damaged: its bytes do not match the digest in its name",
        "an unchanged shard",
        f"Delete the file and record again with the same model and corpus: only shard {shard_index} is repeated",
    )


def _read_plan(folder: RecordingFolder, manifest: Mapping[str, Any], corpus: Corpus) -> RecordingPlan:
    inputs = tuple(
        folder.read_lines(INPUTS_FILE, manifest["digests"][INPUTS_FILE], lambda line: parse_input(line, corpus))
    )
    shards = _manifest_shards(manifest)
    if sum(len(batch) for shard in shards for batch in shard) != len(inputs):
        raise Refusal(
            f"The shards of {folder.path} are not those of its {len(inputs)} inputs",
            "an unchanged recording of `bertology record`",
            f"Delete the folder {folder.path} and record again",
        )
    return RecordingPlan(inputs, shards, manifest["counts"])


def _manifest_shards(manifest: Mapping[str, Any]) -> tuple[tuple[tuple[int, ...], ...], ...]:
    return tuple(tuple(tuple(batch) for batch in shard) for shard in manifest["shards"])


def _input_to_json(recorded_input: RecordedInput, corpus: Corpus) -> dict[str, Any]:
    tokens = recorded_input.tokens
    data: dict[str, Any] = {name: getattr(recorded_input, name) for name in INDICES}
    data |= {"tokens": tokens.tokens}
    data |= {name: getattr(tokens, name) for name in TOKEN_COUNTS}
    data |= {name: getattr(tokens, name).tolist() for name in TOKEN_ARRAYS}
    if recorded_input.text != corpus[recorded_input.example_index].text_inputs[recorded_input.input_index]:
        data["segments"] = [sentence_to_json(segment) for segment in recorded_input.text.segments]
    return data
