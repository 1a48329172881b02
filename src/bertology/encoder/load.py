"""Load an encoder by name. torch and transformers are imported when a model is loaded, not before.

mini                      a built-in model (see `builtin`)
path/to/directory         a model in Hugging Face format
owner/name                a model on the hub
random:MODEL[@SEED]       the same architecture with random weights
static:MODEL              the model's input embeddings, without context
glove:PATH                word vectors from a file
random-vectors:DIM[@SEED] a random vector for each word
circulant:DIM[@SEED]      a row of random circulant matrices for each word
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from bertology.encoder.builtin import BUILT_IN_MODELS, installed_models
from bertology.encoder.encoder import Encoder, TaskEncoder
from bertology.encoder.hub import is_hub_name, resolve_hub_model
from bertology.encoder.static import CirculantVectors, RandomVectors, TokenEmbeddings, WordVectors
from bertology.encoder.word_vector_files import read_vectors
from bertology.errors import Refusal, unknown_name
from bertology.lazy import torch

DTYPES = ("float32", "bfloat16", "float16")
PREFIXES = ("random", "static", "glove", "random-vectors", "circulant")


@dataclass(frozen=True)
class LoadConfig:
    """Device, type of number, and whether pickled weights may be read."""

    device: str = "cpu"
    dtype: str = "float32"
    allow_pickle: bool = False


def load(name: str, *, device: str = "cpu", dtype: str = "float32", allow_pickle: bool = False) -> Encoder:
    """Load the encoder of this name; see the module's docstring for the forms of names."""
    if dtype not in DTYPES:
        raise unknown_name("dtype", dtype, DTYPES)
    config = LoadConfig(device, dtype, allow_pickle)
    prefix, colon, argument = name.partition(":")
    match prefix if colon else "":
        case "random":
            model, seed = _split_seed(argument)
            return _load_base_transformer(prefix, model, config).randomised(seed)
        case "static":
            return static_encoder(_load_base_transformer(prefix, argument, config))
        case "glove":
            return WordVectors(name, device, read_vectors(Path(argument).expanduser()))
        case "random-vectors":
            return RandomVectors(name, device, *_parse_size_and_seed(argument))
        case "circulant":
            return CirculantVectors(name, device, *_parse_size_and_seed(argument))
        case _:
            return _load_transformer(name, config)


def static_encoder(encoder: TaskEncoder) -> TokenEmbeddings:
    """The input embeddings of a loaded model: `static:MODEL`."""
    return TokenEmbeddings(f"static:{encoder.name}", encoder.device, encoder, encoder.input_embeddings())


def _parse_size_and_seed(argument: str) -> tuple[int, int]:
    size, seed = _split_seed(argument)
    if not (size.isdecimal() and 0 < int(size) <= 100_000):
        raise Refusal(
            f"{size!r} is not a vector size",
            "a positive integer",
            "Write for example `random-vectors:300`, or `random-vectors:300@1`",
        )
    return int(size), seed


def _split_seed(argument: str) -> tuple[str, int]:
    """`NAME@3` is NAME with seed 3, unless it is an existing path."""
    name, at, seed = argument.rpartition("@")
    if not at or not seed.isdecimal() or Path(argument).exists():
        return argument, 0
    return name, int(seed)


def _load_base_transformer(prefix: str, name: str, config: LoadConfig) -> TaskEncoder:
    encoder = load(name, device=config.device, dtype=config.dtype, allow_pickle=config.allow_pickle)
    if not isinstance(encoder, TaskEncoder):
        raise Refusal(
            f"{prefix}:{name} names static vectors",
            f"a transformer after {prefix}:",
            f"Use `{name}` itself, or `random-vectors:DIM` for random vectors",
        )
    return encoder


def _load_transformer(name: str, config: LoadConfig) -> TaskEncoder:
    _refuse_missing_device(config.device)
    built_in = BUILT_IN_MODELS.get(name)
    if built_in is not None:
        return built_in.load(config.device, config.dtype)
    folder = _resolve_directory(name, config)

    from bertology.encoder.huggingface_loading import load_directory
    from bertology.encoder.pruning import is_pruned, load_pruned

    load_folder = load_pruned if is_pruned(folder) else load_directory
    return load_folder(folder, name=name, device=config.device, dtype=config.dtype, allow_pickle=config.allow_pickle)


def _resolve_directory(name: str, config: LoadConfig) -> Path:
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    suggestion = _suggestion(name)
    if path.is_file():
        raise Refusal(
            f"{name} is a file",
            "the directory that holds config.json, the weights and the tokeniser",
            f"Name its directory, or write `glove:{name}` if it holds word vectors",
        )
    if name.startswith((".", "/", "~")) or not is_hub_name(name):
        raise Refusal(
            f"There is no model {name!r}" + ("" if ":" in name else ": no such directory"),
            f"a built-in name ({', '.join(installed_models())}), a directory in Hugging Face format, a "
            f"hub name, or a name after {', '.join(f'{prefix}:' for prefix in PREFIXES)}",
            f"{suggestion}Check the spelling",
        )
    return resolve_hub_model(name, allow_pickle=config.allow_pickle, suggestion=suggestion)


def _suggestion(name: str) -> str:
    prefix, colon, rest = name.partition(":")
    candidates = [f"{prefix}:" for prefix in PREFIXES] if colon else list(installed_models())
    close = difflib.get_close_matches(prefix + colon, candidates, n=1, cutoff=0.5)
    return f"Did you mean {close[0] + rest!r}? " if close else ""


def _refuse_missing_device(device: str) -> None:
    kind = device.partition(":")[0]
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not available.get(kind, False):
        raise Refusal(
            f"The device {device!r} is not available to torch on this machine",
            f"one of: {', '.join(name for name, usable in available.items() if usable)}",
            "Omit --device to run on the CPU",
        )
