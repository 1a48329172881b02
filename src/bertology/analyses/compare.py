"""`bertology.compare`: several models on one corpus, in one table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bertology.analyses.run_by_name import run
from bertology.errors import Refusal
from bertology.results.comparison import ModelTable

DEFAULT_ANALYSES = ("attention/entropy", "attention/targets", "geometry/contextuality")
"""What models are compared by if nothing else is named: analyses of any corpus that take seconds."""


def compare(
    encoders: Any, corpus: Any, analyses: str | Sequence[str] = DEFAULT_ANALYSES, **arguments: Any
) -> ModelTable:
    """The numbers of several models side by side: a row for each measure, layer or row of a table.

    Each model reads the corpus once. `arguments` are those of `bertology.run`.
    """
    if not isinstance(encoders, list):
        raise Refusal(
            f"compare was given {encoders!r} as models",
            "a list of models, such as ['mini', 'tiny']",
            "Put the models in a list; bertology.run analyses one model",
        )
    models: list[Any] = encoders
    return run([analyses] if isinstance(analyses, str) else list(analyses), models, corpus, **arguments).table()
