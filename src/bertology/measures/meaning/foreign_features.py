"""Features of other packages: Flair and ELMo from local files, and the user's own functions."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.errors import Refusal
from bertology.recording.files import digest_of_file

if TYPE_CHECKING:
    from bertology.measures.meaning.features import CalledFeature

Function = Callable[[Sequence[str]], Any]

FLAIR_HELP = "Install it with `pip install flair` and name the file of a Flair language model: flair:news-forward.pt"
ELMO_HELP = (
    "Install it with `pip install allennlp` and name a folder with one options file (.json) and one weights file "
    "(.hdf5): elmo:FOLDER"
)


def foreign_feature(kind: str, rest: str) -> CalledFeature:
    """The feature that `flair:PATH[+PATH]`, `elmo:FOLDER` or `call:MODULE:FUNCTION` names."""
    from bertology.measures.meaning.features import CalledFeature

    if kind == "call":
        return CalledFeature(f"call:{rest}", _own_function(rest))
    files = _flair_files(rest) if kind == "flair" else _elmo_files(rest)
    function = _flair(files) if kind == "flair" else _elmo(*files)
    return CalledFeature(f"{kind}:{rest}", function, f"{kind} {' '.join(map(digest_of_file, files))}")


def _own_function(rest: str) -> Function:
    module, colon, name = rest.partition(":")
    try:
        found: Any = getattr(importlib.import_module(module), name) if colon else None
    except (ImportError, AttributeError) as error:
        raise _not_callable(rest, str(error)) from error
    if not callable(found):
        raise _not_callable(rest, "nothing that can be called")
    return found


def _not_callable(rest: str, found: str) -> Refusal:
    return Refusal(
        f"call:{rest} leads to {found}",
        "call:MODULE:FUNCTION, a function from the words of a sentence to one vector a word",
        "Check the names; the module must be importable from here",
    )


def _flair_files(rest: str) -> list[Path]:
    """Forward and backward models may be named together: flair:news-forward.pt+news-backward.pt."""
    files = [Path(part).expanduser() for part in rest.split("+")]
    for file in files:
        if not file.is_file():
            raise Refusal(f"There is no file {file}", "the weights of a Flair language model", FLAIR_HELP)
    return files


def _flair(files: Sequence[Path]) -> Function:
    embeddings, data = _package("flair.embeddings", FLAIR_HELP), _package("flair.data", FLAIR_HELP)
    stacked = embeddings.StackedEmbeddings([embeddings.FlairEmbeddings(str(file)) for file in files])

    def vectors(words: Sequence[str]) -> NDArray[np.float32]:
        if not words:
            return np.zeros((0, stacked.embedding_length), np.float32)
        sentence = data.Sentence(list(words))
        stacked.embed(sentence)
        return np.stack([token.embedding.detach().cpu().numpy() for token in sentence])

    return vectors


def _elmo_files(rest: str) -> list[Path]:
    folder = Path(rest).expanduser()
    files = [sorted(folder.glob(pattern)) for pattern in ("*.json", "*.hdf5")]
    if [len(some) for some in files] != [1, 1]:
        raise Refusal(f"{folder} has {len(files[0])} .json and {len(files[1])} .hdf5 files", "one of each", ELMO_HELP)
    return [some[0] for some in files]


def _elmo(options: Path, weights: Path) -> Function:
    """The top layer, as Wiedemann et al. take it."""
    elmo = _package("allennlp.modules.elmo", ELMO_HELP)
    network = elmo._ElmoBiLm(str(options), str(weights))
    network.eval()

    def vectors(words: Sequence[str]) -> NDArray[np.float32]:
        import torch

        if not words:
            return np.zeros((0, network.get_output_dim()), np.float32)
        with torch.inference_mode():
            states = network(elmo.batch_to_ids([list(words)]))["activations"][-1][0]
        return states[1 : len(words) + 1].cpu().numpy()  # without the marks of where a sentence begins and ends

    return vectors


def _package(name: str, help: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Refusal(f"The package {name.partition('.')[0]} is not installed", "that package", help) from error
