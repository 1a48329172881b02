"""Write the pages of this folder anew from the records in their JSON files, as they look with the present version.

    python docs/atlas/write_pages.py

No model is loaded or judged: `make.py` does that.
"""

from __future__ import annotations

import json
from pathlib import Path

from bertology.atlas.content import Atlas
from bertology.atlas.judged_model import JudgedModel, NotJudged
from bertology.atlas.page import atlas_page
from bertology.claims.run import select_claims

FOLDER = Path(__file__).parent
CORPORA = ("english", "chinese")


def read_atlas(corpus: str) -> Atlas:
    """The atlas whose records are in the JSON file of a corpus."""
    content = json.loads((FOLDER / f"{corpus}.json").read_text("utf-8"))
    options = content["options"]
    return Atlas(
        models=tuple(map(JudgedModel.model_validate, content["records"])),
        claims=select_claims(options["papers"], without=options["without"], full=options["full"]),
        corpus=content["corpus"],
        not_judged=tuple(map(NotJudged.model_validate, content["not_judged"])),
        messages=tuple(content["messages"]),
        options=options,
    )


def main() -> None:
    """Write all pages."""
    for corpus in CORPORA:
        (FOLDER / f"{corpus}.html").write_text(atlas_page(read_atlas(corpus)), "utf-8")


if __name__ == "__main__":
    main()
