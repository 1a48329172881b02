"""`load`: an encoder from the name of a model. Nothing heavy is imported before a model is asked for.

mini                      a built-in model (see `builtin`)
path/to/directory         a model in Hugging Face form
owner/name                a model on the hub
random:MODEL[@SEED]       the same architecture with fresh weights
static:MODEL              the model's input embeddings, without context
glove:PATH                word vectors from a file
random-vectors:DIM[@SEED] a random vector for each word
circulant:DIM[@SEED]      the same with a row of random circulant matrices for each word
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bertology.encoder.builtin import BUILT_IN
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal, unknown_name

if TYPE_CHECKING:
    from bertology.encoder.huggingface import HuggingFaceEncoder

DTYPES = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Settings:
    """How to load: where to, in what type of number, and whether pickled weights may be read."""

    device: str = "cpu"
    dtype: str = "float32"
    allow_pickle: bool = False


def load(name: str, *, device: str = "cpu", dtype: str = "float32", allow_pickle: bool = False) -> Encoder:
    """The encoder that `name` names; refused, with what to do about it, where there is none."""
    if dtype not in DTYPES:
        raise unknown_name("type of number", dtype, DTYPES)
    settings = Settings(device, dtype, allow_pickle)
    kind, colon, rest = name.partition(":")
    if colon and kind in PREFIXES:
        return PREFIXES[kind](rest, settings)
    return _transformer(name, settings)


def _random(rest: str, settings: Settings) -> Encoder:
    named, seed = _seeded(rest)
    return _transformer_under("random", named, settings).randomised(seed)


def _static(rest: str, settings: Settings) -> Encoder:
    return static_form(_transformer_under("static", rest, settings))


def static_form(model: HuggingFaceEncoder) -> Encoder:
    """The input embeddings of a model that is already loaded: what `static:MODEL` names."""
    from bertology.encoder.static import PieceTable, StaticEncoder

    table = PieceTable(model.tokenise, model.tokeniser.fingerprint, model.input_vectors())
    return StaticEncoder(f"static:{model.name}", table, model.device)


def _glove(rest: str, settings: Settings) -> Encoder:
    from bertology.encoder.static import StaticEncoder, WordTable
    from bertology.encoder.vectors import read_vectors

    return StaticEncoder(f"glove:{rest}", WordTable(read_vectors(Path(rest).expanduser())), settings.device)


def _random_vectors(rest: str, settings: Settings) -> Encoder:
    from bertology.encoder.static import RandomVectors, StaticEncoder

    return StaticEncoder(f"random-vectors:{rest}", RandomVectors(*_size_and_seed(rest)), settings.device)


def _circulant(rest: str, settings: Settings) -> Encoder:
    from bertology.encoder.static import CirculantVectors, StaticEncoder

    return StaticEncoder(f"circulant:{rest}", CirculantVectors(*_size_and_seed(rest)), settings.device)


def _size_and_seed(rest: str) -> tuple[int, int]:
    size, seed = _seeded(rest)
    if not (size.isdecimal() and 0 < int(size) <= 100_000):
        raise Refusal(
            f"{size!r} is not a size of vectors",
            "a whole number",
            "Write for example `random-vectors:300`, or `random-vectors:300@1`",
        )
    return int(size), seed


PREFIXES: dict[str, Callable[[str, Settings], Encoder]] = {
    "random": _random,
    "static": _static,
    "glove": _glove,
    "random-vectors": _random_vectors,
    "circulant": _circulant,
}


def _seeded(rest: str) -> tuple[str, int]:
    """`NAME@3` is NAME with seed 3, unless a path is really called that."""
    named, at, seed = rest.rpartition("@")
    if not at or not seed.isdecimal() or Path(rest).exists():
        return rest, 0
    return named, int(seed)


def _transformer_under(prefix: str, name: str, settings: Settings) -> HuggingFaceEncoder:
    from bertology.encoder.huggingface import HuggingFaceEncoder

    model = load(name, device=settings.device, dtype=settings.dtype, allow_pickle=settings.allow_pickle)
    if not isinstance(model, HuggingFaceEncoder):
        raise Refusal(
            f"{prefix}:{name} asks for the {prefix} form of something that is already a table of vectors",
            f"{prefix}: before a transformer",
            "Use the table as it is, or `random-vectors:DIM` for random ones",
        )
    return model


def _transformer(name: str, settings: Settings) -> HuggingFaceEncoder:
    _refuse_absent_device(settings.device)
    built_in = BUILT_IN.get(name)
    if built_in is not None:
        return built_in.load(settings.device, settings.dtype)
    folder = _folder(name, settings)

    from bertology.encoder.pruning import is_pruned, load_pruned
    from bertology.encoder.transformer_files import load_directory

    if is_pruned(folder):
        return load_pruned(folder, name=name, device=settings.device, dtype=settings.dtype)
    return load_directory(
        folder, name=name, device=settings.device, dtype=settings.dtype, allow_pickle=settings.allow_pickle
    )


def _folder(name: str, settings: Settings) -> Path:
    from bertology.encoder.hub import fetch, is_hub_name

    path = Path(name).expanduser()
    if path.is_dir():
        return path
    suggestion = _suggestion(name)
    if path.is_file():
        raise Refusal(
            f"{name} is a file",
            "the directory that holds config.json, the weights and the tokeniser",
            f"Name the directory it lies in, or write `glove:{name}` if it holds word vectors",
        )
    if name.startswith((".", "/", "~")) or not is_hub_name(name):
        raise Refusal(
            f"There is no model {name!r}" + ("" if ":" in name else ": no such directory"),
            f"a built-in name ({', '.join(BUILT_IN)}), a directory in Hugging Face form, a hub name, or one of these "
            f"before a name: {', '.join(f'{prefix}:' for prefix in PREFIXES)}",
            f"{suggestion}Check the spelling",
        )
    return fetch(name, allow_pickle=settings.allow_pickle, suggestion=suggestion)


def _suggestion(name: str) -> str:
    prefix, colon, rest = name.partition(":")
    known = [f"{kind}:" for kind in PREFIXES] if colon else list(BUILT_IN)
    near = difflib.get_close_matches(prefix + colon, known, n=1, cutoff=0.5)
    return f"Did you mean {near[0] + rest!r}? " if near else ""


def _refuse_absent_device(device: str) -> None:
    import torch

    kind = device.partition(":")[0]
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not there.get(kind, False):
        raise Refusal(
            f"This machine has no device {device!r} that torch can use",
            f"one of: {', '.join(name for name, usable in there.items() if usable)}",
            "Leave --device out to run on the processor",
        )
