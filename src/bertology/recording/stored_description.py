"""The schemas of manifest.json and inputs.jsonl: what is read of a recording is what one can be made of."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from bertology.corpus.corpus import Corpus
from bertology.corpus.example import TextInput
from bertology.corpus.stored_examples import StoredSentence, parse_sentence
from bertology.encoder.token_batch import RecordedInput
from bertology.encoder.tokens import SpecialToken, TokenisedInput
from bertology.number_ranges import MAX_COUNT

MAX_LAYERS, MAX_WIDTH = 10_000, 10_000_000
TOKEN_ARRAYS = ("ids", "type_ids", "segment_ids", "word_ids", "special_kinds")
TOKEN_COUNTS = ("n_words", "n_straddling", "n_unknown")

Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Int32 = Annotated[int, Field(ge=-(2**31), lt=2**31)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _StoredEncoder(_Stored):
    name: str
    fingerprint: str
    layers: Annotated[int, Field(ge=0, le=MAX_LAYERS)]
    heads: Annotated[int, Field(ge=0, le=MAX_LAYERS)]
    width: Annotated[int, Field(ge=0, le=MAX_WIDTH)]
    causal: bool
    task_heads: list[str]
    attention_windows: list[Annotated[int, Field(ge=0)] | None]


class _StoredCorpus(_Stored):
    name: str
    format: str


class _StoredConfig(_Stored):
    overflow: Literal["error", "skip", "truncate", "window"]
    max_length: Annotated[int, Field(ge=1, le=MAX_COUNT)] | None
    half_precision: bool
    objective: str
    seed: Count


class _StoredManifest(_Stored):
    format: int
    key: dict[str, Any]
    encoder: _StoredEncoder
    corpus: _StoredCorpus
    config: _StoredConfig
    counts: dict[str, Count]
    digests: dict[Literal["corpus.jsonl", "inputs.jsonl"], Digest]
    shards: list[list[list[Count]]]


@with_config(ConfigDict(extra="forbid"))
class StoredInput(TypedDict):
    """One recorded input; `segments` only where they are not those of the example."""

    example_index: Count
    input_index: Count
    window_index: Count
    tokens: list[str]
    n_words: Count
    n_straddling: Count
    n_unknown: Count
    ids: list[Int32]
    type_ids: list[Int32]
    segment_ids: list[Int32]
    word_ids: list[Int32]
    special_kinds: list[Int32]
    segments: NotRequired[list[StoredSentence]]


_INPUT = TypeAdapter(StoredInput)


def check_manifest(manifest: Any) -> None:
    """Raise a `ValueError` for an object that is not the manifest of a recording."""
    checked = _StoredManifest.model_validate(manifest)
    if len(checked.digests) < 2:
        raise ValueError("the digest of a file is missing")
    windows = checked.encoder.attention_windows
    if windows and len(windows) != checked.encoder.layers:
        raise ValueError(f"{len(windows)} attention windows for {checked.encoder.layers} layers")
    indices = [index for shard in checked.shards for batch in shard for index in batch]
    if sorted(indices) != list(range(len(indices))):
        raise ValueError("the shards do not hold every input once")


def parse_input(line: bytes, corpus: Corpus) -> RecordedInput:
    """The recorded input in a line; a `ValueError` if it is no input of this corpus."""
    stored: Any = _INPUT.validate_json(line, strict=True)
    example_index, input_index = stored["example_index"], stored["input_index"]
    if example_index >= len(corpus) or input_index >= len(corpus[example_index].text_inputs):
        raise ValueError(f"there is no input {input_index} of example {example_index}")
    if "segments" in stored:
        text = TextInput(tuple(parse_sentence(segment) for segment in stored["segments"]))
    else:
        text = corpus[example_index].text_inputs[input_index]
    arrays: dict[str, Any] = {name: np.asarray(stored[name], np.int32) for name in TOKEN_ARRAYS}
    counts: dict[str, Any] = {name: stored[name] for name in TOKEN_COUNTS}
    tokens = TokenisedInput(tokens=tuple(stored["tokens"]), **arrays, **counts)
    _check_tokens(tokens, text)
    return RecordedInput(example_index, input_index, stored["window_index"], text, tokens)


def _check_tokens(tokens: TokenisedInput, text: TextInput) -> None:
    """Refuse tokens that do not fit each other or the words."""
    if any(len(getattr(tokens, name)) != len(tokens.tokens) for name in TOKEN_ARRAYS):
        raise ValueError(f"{len(tokens.tokens)} tokens have arrays of another length")
    if tokens.n_words != len(text.words):
        raise ValueError(f"{len(text.words)} words, and n_words is {tokens.n_words}")
    ranges = {
        "word_ids": (-1, tokens.n_words - 1),
        "segment_ids": (-1, max(0, len(text.segments) - 1)),
        "type_ids": (0, MAX_COUNT),
        "special_kinds": (min(SpecialToken), max(SpecialToken)),
    }
    for name, (lowest, highest) in ranges.items():
        values = getattr(tokens, name)
        if len(values) and not lowest <= values.min() <= values.max() <= highest:
            raise ValueError(f"{name} are not from {lowest} to {highest}")
