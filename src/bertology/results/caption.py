"""Captions of figures: model, corpus, sample size, intervals and special tokens, in plain sentences."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal

from bertology.errors import count_noun
from bertology.estimates.estimate import Interval
from bertology.results.shapes import MeasuredShape

if TYPE_CHECKING:
    from bertology.results.result import Result

CaptionStyle = Literal["none", "short", "full"]

INTERVAL_NOUNS: dict[Interval, str] = {
    "bootstrap": "95 % bootstrap intervals",
    "t": "95 % t intervals",
    "simultaneous": "simultaneous 95 % intervals",
    "range": "ranges over seeds",
    "exact": "",
}


def figure_title(result: Result) -> str:
    """The question of the analysis; of results that do not have it, the name of the analysis in words."""
    question = result.provenance.get("question")
    if question:
        return str(question)
    group, _, name = result.analysis.rpartition("/")
    words = f"{group}: {name}" if group else name
    return (words[:1].upper() + words[1:]).replace("_", " ")


def caption_line(result: Result, measures: Collection[str] = ()) -> str:
    """The caption in one line: model, corpus, sample size and kind of interval."""
    models = " and ".join(_model_names(result))
    corpus = _corpus(result)
    source = f"{models} on {corpus}" if models and corpus else models or corpus
    intervals = _intervals(result, measures)
    return "; ".join(filter(None, (source, result.sample_size, intervals))) + "."


def caption_sentences(result: Result, measures: Collection[str] = ()) -> list[str]:
    """The caption in sentences: one each for model, corpus, sample size, intervals and special tokens."""
    return list(_sentences(result, measures))


def _sentences(result: Result, measures: Collection[str]) -> Iterator[str]:
    models = list(_describe_models(result))
    if models:
        yield f"{'Models' if len(models) > 1 else 'Model'}: {'; '.join(models)}."
    if corpus := _corpus(result):
        yield f"Corpus: {corpus}."
    yield f"Sample size: {result.sample_size}."
    if isinstance(result.data, MeasuredShape):
        intervals = _intervals(result, measures)
        yield f"Shown with {intervals}." if intervals else "Exact numbers, without intervals."
    if policy := plain_policy(str(result.provenance.get("special_tokens", "")), result.options):
        yield policy


def _intervals(result: Result, measures: Collection[str]) -> str:
    """The kinds of intervals of the measures; all but the first kind have the names of their measures."""
    if not isinstance(result.data, MeasuredShape):
        return ""
    names_by_kind: dict[Interval, list[str]] = {}
    for name, estimates in result.data.measures.items():
        if not measures or name in measures:
            names_by_kind.setdefault(estimates.interval, []).append(name)
    if len(names_by_kind) > 1:
        names_by_kind.pop("exact", None)
    order = sorted(names_by_kind, key=list(INTERVAL_NOUNS).index)
    named = [f"{INTERVAL_NOUNS[kind]} of {', '.join(names_by_kind[kind])}" for kind in order]
    return "; ".join([*(INTERVAL_NOUNS[kind] for kind in order[:1]), *named[1:]])


def _models(result: Result) -> Iterator[Mapping[str, Any]]:
    for role, summary in result.inputs.items():
        if role not in ("corpus", "untrained") and isinstance(summary, Mapping) and "model" in summary:
            yield summary["model"]


def _model_names(result: Result) -> list[str]:
    return [short_name(str(model.get("name", ""))) for model in _models(result)]


def _describe_models(result: Result) -> Iterator[str]:
    for model in _models(result):
        size = ""
        if model.get("layers") and model.get("heads"):
            size = f", {count_noun(model['layers'], 'layers')} of {count_noun(model['heads'], 'heads')}"
        changes = "".join(f", {change}: {' '.join(names)}" for change, names in model.get("changes", {}).items())
        yield f"{short_name(str(model['name']))}{size}{changes}"


def _corpus(result: Result) -> str:
    """The name of the corpus and its number of examples."""
    summaries: list[Any] = [result.inputs.get("corpus"), *(s.get("corpus") for s in _input_summaries(result))]
    corpus = next((summary for summary in summaries if summary), None)
    if corpus is None:
        return ""
    size = f" ({count_noun(corpus['examples'], 'examples')})" if "examples" in corpus else ""
    return f"{short_name(str(corpus['name']))}{size}"


def _input_summaries(result: Result) -> Iterator[Mapping[str, Any]]:
    for role, summary in result.inputs.items():
        if role not in ("corpus", "untrained") and isinstance(summary, Mapping):
            yield summary


def short_name(name: str) -> str:
    """The last part of a path, or the name as it is; names of the hub have one slash and stay whole."""
    is_path = name.startswith(("/", ".", "~")) or name.count("/") > 1 or "\\" in name
    return PurePath(name.replace("\\", "/")).name or name if is_path else name


def plain_policy(policy: str, options: Mapping[str, Any] | None = None) -> str:
    """The treatment of special tokens without the options that would change it; if one is set, the text says so."""
    for flag, values in re.findall(r"--([\w-]+) ([\w-]+(?: or [\w-]+)*)", policy):
        if (options or {}).get(flag.replace("-", "_")) in values.split():
            text = re.sub(r"--([\w-]+)", lambda matched: f"the option {matched[1].replace('-', ' ')}", policy)
            return f"{text.replace('`', '')} This option is set here."
    text = re.sub(r"\s*\([^()]*--[^()]*\)", "", policy.replace("`", ""))
    text = re.sub(r"(?:;|,? and| or)?(?: with)? --[^.;]*", "", text)
    text = re.sub(r", except \[CLS\](?=\.|$)", "", text) if "--pooling" in policy else text
    return re.sub(r"\s+([.;,])", r"\1", " ".join(text.split()))
