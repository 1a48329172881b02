"""Models of an earlier atlas, read from its JSON file: they stand beside the judged ones without being loaded.

A finding is added only if it is still tested in the same way. The file has a digest of each test and of the versions of
the analyses behind it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from pydantic import BaseModel, ConfigDict

from bertology.analyses import registry
from bertology.atlas.judged_model import JudgedModel
from bertology.claims.claim import Claim
from bertology.corpus.corpus import Corpus
from bertology.errors import Refusal, count_noun
from bertology.input_files import describe_error, read_json_object, shorten_name
from bertology.results.drawing.strip import StripMark

EXPECTED = "the JSON file that `bertology atlas --json` writes"
MAX_NAMES = 4
"""A message names at most this many findings."""
TEST_FIELDS = {
    "analysis", "options", "corpus", "target", "runs", "test", "unit", "languages", "precondition", "controls",
    "published", "published_depth",
}  # fmt: skip
"""The fields of a claim that its verdict depends on; the others are wording."""
SAME_OPTIONS = ("limit", "overflow", "fill", "max_unknown")
"""Options of an atlas, besides those in the tests, that change which sentences a model reads."""


class AddedModels(NamedTuple):
    """The models of earlier atlases, and what was left out of them."""

    models: tuple[JudgedModel, ...]
    messages: tuple[str, ...]


class _StoredFinding(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    id: str
    test_digest: str


class _StoredAtlas(BaseModel):
    """The part of the JSON file that is read."""

    model_config = ConfigDict(extra="ignore")

    corpus: dict[str, Any]
    options: dict[str, Any]
    findings: list[_StoredFinding]
    records: list[JudgedModel]


def digest_test(claim: Claim) -> str:
    """A digest of a claim's test and of the versions of its analyses. Verdicts with equal digests can be compared."""
    versions = {run.analysis: registry.get(run.analysis).version for run in claim.all_runs.values()}
    content = claim.model_dump(mode="json", include=TEST_FIELDS) | {"versions": versions}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def add_models(
    files: Sequence[str | Path],
    judged: Sequence[JudgedModel],
    *,
    corpus: Corpus,
    claims: Sequence[Claim],
    options: Mapping[str, Any],
) -> AddedModels:
    """The models of earlier atlases that are not among the judged ones, with the findings that can be compared.

    A file is refused if its models were judged on another corpus than this one, or with other options.
    """
    models: list[JudgedModel] = []
    messages: list[str] = []
    for file in map(Path, files):
        stored = _read_atlas(file)
        _check_same_sentences(file, stored, corpus, options)
        comparable = _comparable_findings(stored, claims)
        left_out = [claim.headline_for("holds").removesuffix(".") for claim in claims if claim.id not in comparable]
        if not comparable:
            raise Refusal(
                f"{shorten_name(file)} has no finding that is tested in the same way here",
                "an atlas of the same findings and of the same version of bertology",
                "Judge its models again, or name other findings with --paper or --claims",
            )
        if left_out:
            messages.append(
                f"{count_noun(len(left_out), 'findings')} of the models in {file.name} are left out, because they are "
                f"not in the file or were tested in another way: {_list_headlines(left_out)}."
            )
        for model in stored.records:
            same = next((other for other in (*judged, *models) if _is_same(model, other)), None)
            if same is not None:
                messages.append(f"{model.source} in {file.name} is left out: {same.source} is in this atlas already.")
                continue
            findings = tuple(finding for finding in model.findings if finding.id in comparable)
            models.append(model.model_copy(update={"findings": findings, "added_from": file.name}))
    return AddedModels(tuple(models), tuple(messages))


def _read_atlas(file: Path) -> _StoredAtlas:
    content = read_json_object(file, EXPECTED)
    if "records" not in content and "verdicts" in content:
        raise Refusal(
            f"{shorten_name(file)} has no `records` of its models: an earlier version of bertology wrote it",
            EXPECTED,
            "Write it again with the present version",
        )
    try:
        stored = _StoredAtlas.model_validate(content)
        for model in stored.records:
            _check_numbers(model)
    except (ValueError, OverflowError) as error:
        raise Refusal(
            f"{shorten_name(file)} is not an atlas ({describe_error(error)})", EXPECTED, "Write it again, or copy it"
        ) from error
    return stored


def _check_numbers(model: JudgedModel) -> None:
    """Refuse what pydantic lets through and what cannot be compared or drawn."""
    if not all(map(math.isfinite, _floats(model.model_dump()))):
        raise ValueError(f"a number of {model.name} is infinite")
    for finding in model.findings:
        resampled = None if finding.effect is None else finding.effect.resamples()
        if resampled is not None and not np.isfinite(resampled).all():
            raise ValueError(f"a resample of {finding.id} is not a number")
        low, high = finding.axis
        if not low < high:
            raise ValueError(f"the axis of {finding.id} goes from {low} to {high}")
        if finding.peak is not None and not 0 <= finding.peak.layer <= finding.peak.n_layers > 0:
            raise ValueError(f"the peak of {finding.id} is in layer {finding.peak.layer} of {finding.peak.n_layers}")


def _floats(value: object) -> Iterator[float]:
    """All floating-point numbers in nested mappings and sequences."""
    if isinstance(value, float):
        yield value
    elif isinstance(value, Mapping):
        yield from chain.from_iterable(map(_floats, cast("Mapping[str, object]", value).values()))
    elif isinstance(value, list | tuple):
        yield from chain.from_iterable(map(_floats, cast("Sequence[object]", value)))
    elif isinstance(value, StripMark):
        yield from (value.value, value.low, value.high)


def _check_same_sentences(file: Path, stored: _StoredAtlas, corpus: Corpus, options: Mapping[str, Any]) -> None:
    here = corpus.summary()
    if stored.corpus.get("fingerprint") != here["fingerprint"]:
        raise Refusal(
            f"The models of {shorten_name(file)} were judged on {_describe_corpus(stored.corpus)}, "
            f"and this atlas is on {_describe_corpus(here)}",
            "the same sentences for all models",
            "Name the corpus and the --limit of the file",
        )
    for name in SAME_OPTIONS:
        there, now = stored.options.get(name), options.get(name)
        if there != now:
            raise Refusal(
                f"The models of {shorten_name(file)} were judged with {name} = {there}, and this atlas has {now}",
                "the same options for all models",
                "Use the options of the file",
            )


def _describe_corpus(summary: Mapping[str, Any]) -> str:
    return f"{count_noun(summary.get('examples', 0), 'examples')} of {summary.get('name', 'an unknown corpus')}"


def _comparable_findings(stored: _StoredAtlas, claims: Sequence[Claim]) -> set[str]:
    digests = {finding.id: finding.test_digest for finding in stored.findings}
    return {claim.id for claim in claims if digests.get(claim.id) == digest_test(claim)}


def _is_same(model: JudgedModel, other: JudgedModel) -> bool:
    return model.fingerprint == other.fingerprint or model.source == other.source


def _list_headlines(headlines: Sequence[str]) -> str:
    rest = len(headlines) - MAX_NAMES
    return "; ".join(headlines[:MAX_NAMES]) + (f"; and {rest} more" if rest > 0 else "")
