"""Load an encoder by name, or wrap a model in memory. torch and transformers are imported with a model, not before.

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
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from annotated_types import Interval

from bertology.encoder.builtin import BUILT_IN_MODELS, installed_models
from bertology.encoder.encoder import Encoder, TaskEncoder
from bertology.encoder.hub import is_hub_name, resolve_hub_model
from bertology.encoder.static import CirculantVectors, RandomVectors, TokenEmbeddings, WordVectors
from bertology.encoder.word_vector_files import read_vectors
from bertology.errors import Refusal, unknown_name
from bertology.input_files import expand_path, path_exists, shorten_name
from bertology.lazy import torch
from bertology.machine_errors import raise_machine_error
from bertology.number_ranges import MAX_COUNT, parse_whole_number

if TYPE_CHECKING:  # not as torch.dtype: the types of public functions are resolved before torch is needed
    from torch import device as TorchDevice
    from torch import dtype as TorchDtype

VECTOR_SIZE = Interval(ge=1, le=100_000)
DTYPES = ("float32", "bfloat16", "float16")
PREFIXES = ("random", "static", "glove", "random-vectors", "circulant")
SUPPORTED_VERSIONS = {"torch": ((2, 6), (3,)), "transformers": ((5, 4), (6,))}
"""The lowest version of each package that the tests pass with, and the first that they may fail with."""
version = cache(metadata.version)
"""The installed version of a package; reading its metadata takes as long as loading a small model."""
ACCEPTED = (
    "a name or path, an encoder, a transformers model (alone or with its tokenizer: `(model, tokenizer)`), a PEFT "
    "model, a SentenceTransformer or a transformers pipeline"
)


@dataclass(frozen=True)
class LoadConfig:
    """Device, type of number, whether pickled weights may be read, and the revision of a hub model."""

    device: str = "cpu"
    dtype: str = "float32"
    allow_pickle: bool = False
    revision: str | None = None


def load(
    model: Any,
    tokenizer: Any = None,
    *,
    revision: str | None = None,
    dtype: str | TorchDtype | None = None,
    device: str | TorchDevice | None = None,
    allow_pickle: bool = False,
) -> Encoder:
    """Load the encoder of a name or path, or make one of a model in memory.

    Names are those of this module's docstring; `revision` is a branch, tag or commit of a hub name. In memory: a
    transformers model with or without a task head, a PEFT model (its adapters are merged in a copy), a
    `SentenceTransformer` (its transformer) or a pipeline. Such a model is not changed; the encoder shares its weights
    where no adapter is merged and no other `dtype` or `device` is asked for. `tokenizer` may be left out where the
    object has one, or where the model remembers the directory it was loaded from. By default a named model is loaded
    in float32 on the CPU, and a model in memory stays as it is.
    """
    dtype = None if dtype is None else str(dtype).removeprefix("torch.")
    device = None if device is None else str(device)
    if dtype is not None and dtype not in DTYPES:
        raise unknown_name("dtype", dtype, DTYPES)
    if not isinstance(model, str | Path):
        return _load_from_memory(model, tokenizer, revision, dtype, device)
    if tokenizer is not None:
        raise Refusal(
            f"A tokenizer was given beside the name {str(model)!r}",
            "a tokenizer beside a model in memory only: a named model has its own",
            "Omit the tokenizer, or load the model with transformers first",
        )
    return _load_by_name(str(model), LoadConfig(device or "cpu", dtype or "float32", allow_pickle, revision))


@dataclass(frozen=True)
class ModelSource:
    """A model that is loaded when it is needed, in this process or in a worker: its name and how to load it."""

    name: str
    device: str = "cpu"
    dtype: str = "float32"
    allow_pickle: bool = False

    def load(self) -> Encoder:
        """Load the model."""
        return load(self.name, device=self.device, dtype=self.dtype, allow_pickle=self.allow_pickle)


def as_encoder(value: Any) -> Encoder:
    """The encoder of a name, path, model in memory or (model, tokenizer); an encoder is returned as it is."""
    if isinstance(value, ModelSource):
        return value.load()
    if isinstance(value, Encoder) or getattr(value, "tokenise", None) is not None:  # one of a person's own
        return value
    if isinstance(value, tuple) and len(value) == 2:
        return load(*value)
    return load(value)


def _load_from_memory(
    model: Any, tokenizer: Any, revision: str | None, dtype: str | None, device: str | None
) -> Encoder:
    if revision is not None:
        raise _misplaced_revision(revision, f"a {type(model).__name__}")
    if isinstance(model, Encoder):
        raise Refusal(
            f"{model.name} is an encoder already", "a name, a path or a model", "Use it as it is; it needs no loading"
        )
    # A value that cannot be a model is refused before torch and transformers are imported.
    if model is None or isinstance(model, int | float | bytes | Sequence | set | dict):
        raise Refusal(
            f"A model was given as {type(model).__name__}", ACCEPTED, "See `bertology list models` for built-in names"
        )
    _refuse_versions()
    if device is not None:
        _refuse_missing_device(device)
    from bertology.encoder.in_memory import wrap_in_memory

    return wrap_in_memory(model, tokenizer, dtype=dtype, device=device)


def _load_by_name(name: str, config: LoadConfig) -> Encoder:
    device = config.device
    prefix, colon, argument = name.partition(":")
    match prefix if colon else "":
        case "random":
            model, seed = _split_seed(argument)
            return _load_base_transformer(prefix, model, config).randomised(seed)
        case "static":
            return static_encoder(_load_base_transformer(prefix, argument, config))
        case "glove":
            return WordVectors(name, device, read_vectors(expand_path(argument)))
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
    width = parse_whole_number(size, VECTOR_SIZE)
    if width is None:
        raise Refusal(
            f"{shorten_name(size)!r} is not a vector size",
            f"a whole number from {VECTOR_SIZE.ge} to {VECTOR_SIZE.le:,}",
            "Write for example `random-vectors:300`, or `random-vectors:300@1`",
        )
    return width, seed


def _split_seed(argument: str) -> tuple[str, int]:
    """`NAME@3` is NAME with seed 3, unless it is an existing path."""
    name, at, digits = argument.rpartition("@")
    if not at or not digits.isdecimal() or path_exists(argument):
        return argument, 0
    seed = parse_whole_number(digits)
    if seed is None:
        raise Refusal(
            f"The seed of {shorten_name(name)} is {shorten_name(digits)}",
            f"a whole number from 0 to {MAX_COUNT:,}",
            "Write for example random:MODEL@1",
        )
    return name, seed


def _load_base_transformer(prefix: str, name: str, config: LoadConfig) -> TaskEncoder:
    encoder = _load_by_name(name, config)
    if not isinstance(encoder, TaskEncoder):
        raise Refusal(
            f"{prefix}:{name} names static vectors",
            f"a transformer after {prefix}:",
            f"Use `{name}` itself, or `random-vectors:DIM` for random vectors",
        )
    return encoder


def _load_transformer(name: str, config: LoadConfig) -> TaskEncoder:
    _refuse_versions()
    _refuse_missing_device(config.device)
    built_in = BUILT_IN_MODELS.get(name)
    if config.revision is not None and (built_in is not None or expand_path(name).is_dir()):
        raise _misplaced_revision(config.revision, f"{name!r}, which is not on the hub")
    if built_in is not None:
        return built_in.load(config.device, config.dtype)
    folder = _resolve_directory(name, config)

    from bertology.encoder.huggingface_loading import load_directory
    from bertology.encoder.pruning import is_pruned, load_pruned

    load_folder = load_pruned if is_pruned(folder) else load_directory
    name = f"{name}@{config.revision}" if config.revision else name
    return load_folder(folder, name=name, device=config.device, dtype=config.dtype, allow_pickle=config.allow_pickle)


def _resolve_directory(name: str, config: LoadConfig) -> Path:
    path = expand_path(name)
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
    return resolve_hub_model(name, allow_pickle=config.allow_pickle, suggestion=suggestion, revision=config.revision)


def _suggestion(name: str) -> str:
    prefix, colon, rest = name.partition(":")
    candidates = [f"{prefix}:" for prefix in PREFIXES] if colon else list(installed_models())
    close = difflib.get_close_matches(prefix + colon, candidates, n=1, cutoff=0.5)
    return f"Did you mean {close[0] + rest!r}? " if close else ""


def _misplaced_revision(revision: str, model: str) -> Refusal:
    return Refusal(
        f"The revision {revision!r} was given for {model}",
        "a revision beside the name of a model on the hub",
        "Omit the revision",
    )


def _refuse_versions() -> None:
    """Refuse versions of torch and transformers that are known not to work, and packages that cannot be imported."""
    for package, (lowest, first_unknown) in SUPPORTED_VERSIONS.items():
        try:
            installed = version(package)
        except metadata.PackageNotFoundError:
            installed = "not installed"
        numbers = tuple(int(part) for part in installed.split("+")[0].split(".")[:2] if part.isdecimal())
        if not lowest <= numbers < first_unknown:
            raise _version_refusal(f"{package} is {installed}")
    try:
        for module in ("torch", "transformers.modeling_utils"):
            import_module(module)
    except Exception as error:  # versions that do not fit each other fail in many ways when they are imported
        raise_machine_error(error)
        message = " ".join(str(error).split())[:200]
        raise _version_refusal(
            f"torch and transformers cannot be imported ({type(error).__name__}: {message})"
        ) from error


def _version_refusal(problem: str) -> Refusal:
    ranges = [
        f"{package} from {'.'.join(map(str, lowest))} to below {first_unknown[0]}"
        for package, (lowest, first_unknown) in SUPPORTED_VERSIONS.items()
    ]
    installed = [f"{package} {version(package)}" for package in SUPPORTED_VERSIONS if _is_installed(package)]
    return Refusal(
        problem + f"; installed: {', '.join(installed) or 'neither'}",
        " and ".join(ranges),
        'Run `pip install --upgrade "torch>=2.6" "transformers>=5.4,<6"`, or create a new environment for bertology',
    )


def _is_installed(package: str) -> bool:
    try:
        version(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def _refuse_missing_device(device: str) -> None:
    kind = device.partition(":")[0]
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not available.get(kind, False):
        raise Refusal(
            f"The device {device!r} is not available to torch on this machine",
            f"one of: {', '.join(name for name, usable in available.items() if usable)}",
            "Omit --device to run on the CPU",
        )
