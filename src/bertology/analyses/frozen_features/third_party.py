"""Features from other packages: Flair and ELMo from local files, and user-defined functions."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.atomic_files import digest_file
from bertology.errors import Refusal
from bertology.lazy import torch

if TYPE_CHECKING:
    from bertology.analyses.frozen_features.extractors import FunctionFeatureExtractor

Function = Callable[[Sequence[str]], Any]

FLAIR_HELP = "Install it with `pip install flair` and name the file of a Flair language model: flair:news-forward.pt"
ELMO_HELP = (
    "Install it with `pip install allennlp` and name a directory with one options file (.json) and one weights file "
    "(.hdf5): elmo:DIR"
)


def third_party_extractor(kind: str, rest: str) -> FunctionFeatureExtractor:
    """The feature extractor named `flair:PATH[+PATH]`, `elmo:DIR` or `call:MODULE:FUNCTION`."""
    from bertology.analyses.frozen_features.extractors import FunctionFeatureExtractor

    if kind == "call":
        return FunctionFeatureExtractor(f"call:{rest}", _user_function(rest))
    files = _flair_files(rest) if kind == "flair" else _elmo_files(rest)
    function = _flair(files) if kind == "flair" else _elmo(*files)
    return FunctionFeatureExtractor(f"{kind}:{rest}", function, f"{kind} {' '.join(map(digest_file, files))}")


def _user_function(rest: str) -> Function:
    module, colon, name = rest.partition(":")
    try:
        function: Any = getattr(importlib.import_module(module), name) if colon else None
    except (ImportError, AttributeError) as error:
        raise _not_callable(rest, str(error)) from error
    if not callable(function):
        raise _not_callable(rest, "not a function")
    return function


def _not_callable(rest: str, problem: str) -> Refusal:
    return Refusal(
        f"call:{rest} cannot be used: {problem}",
        "call:MODULE:FUNCTION, a function from the words of a sentence to one vector per word",
        "Check the names; the module must be importable",
    )


def _flair_files(rest: str) -> list[Path]:
    """Forward and backward models can be combined: flair:news-forward.pt+news-backward.pt."""
    files = [Path(part).expanduser() for part in rest.split("+")]
    for file in files:
        if not file.is_file():
            raise Refusal(f"{file} does not exist", "the weights of a Flair language model", FLAIR_HELP)
    return files


def _flair(files: Sequence[Path]) -> Function:
    embeddings, data = _import_package("flair.embeddings", FLAIR_HELP), _import_package("flair.data", FLAIR_HELP)
    stacked = embeddings.StackedEmbeddings([embeddings.FlairEmbeddings(str(file)) for file in files])

    def vectors(words: Sequence[str]) -> NDArray[np.float32]:
        if not words:
            return np.zeros((0, stacked.embedding_length), np.float32)
        sentence = data.Sentence(list(words))
        stacked.embed(sentence)
        return np.stack([token.embedding.detach().cpu().numpy() for token in sentence])

    return vectors


def _elmo_files(rest: str) -> list[Path]:
    directory = Path(rest).expanduser()
    files = [sorted(directory.glob(pattern)) for pattern in ("*.json", "*.hdf5")]
    if [len(matches) for matches in files] != [1, 1]:
        raise Refusal(
            f"{directory} has {len(files[0])} .json and {len(files[1])} .hdf5 files", "one of each", ELMO_HELP
        )
    return [matches[0] for matches in files]


def _elmo(options: Path, weights: Path) -> Function:
    """The top layer, as in Wiedemann et al."""
    elmo = _import_package("allennlp.modules.elmo", ELMO_HELP)
    network = elmo._ElmoBiLm(str(options), str(weights))
    network.eval()

    def vectors(words: Sequence[str]) -> NDArray[np.float32]:
        if not words:
            return np.zeros((0, network.get_output_dim()), np.float32)
        with torch.inference_mode():
            states = network(elmo.batch_to_ids([list(words)]))["activations"][-1][0]
        return states[1 : len(words) + 1].cpu().numpy()  # without the sentence boundary markers

    return vectors


def _import_package(name: str, help: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Refusal(f"The package {name.partition('.')[0]} is not installed", "an installed package", help) from error
