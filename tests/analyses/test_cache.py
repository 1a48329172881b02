"""Stored numbers belong to the options, model, corpus and files they come from, for every analysis that stores.

Each option is changed in turn; the numbers from a store that holds those of all other options are those without one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

import planted_senses
from attackable import bag_of_words_classifier
from bertology.analyses import cache as cache_module
from bertology.analyses import registry
from bertology.analyses import run as run_module
from bertology.analyses.cache import FOLDER, AnalysisCache
from bertology.analyses.declaration import Analysis, Option
from bertology.analyses.interventions.word_substitution.candidates import vocabulary_words
from bertology.analyses.run import RunInputs, run_all
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from bertology.errors import DamagedFileWarning, Refusal
from planted_tasks import planted_corpus

CACHING = [analysis for analysis in registry.load_all() if "cache" in analysis.inputs]
CHEAP: Mapping[str, Any] = {
    "sample_size": 10,
    "n_seeds": 1,
    "epochs": 1,
    "steps": 2,
    "batch_size": 4,
    "n_train_sizes": 2,
    "min_train_fraction": 0.5,
    "l0_penalties": "0.05",
    "n_random_orders": 1,
    "max_queries": 40,
    "n_synonyms": 5,
    "min_cosine": -1.0,
    "min_similarity": -1.0,
    "attacks": "typos,shuffled words",
    "max_pairs": 3,
    "corruptions": "P-Shuffle",
    "ranks": "2",
    "features": "random:4,static",
    "pos_corpus": "{folder}/tags.conllu",
    "function_corpus": "{folder}/tags.conllu",
    "train_corpus": "",
}
"""Options that make a run cheap; `{folder}` is a folder with files of the test."""
CHEAP_BY_ANALYSIS: Mapping[str, Mapping[str, Any]] = {
    "features/glue_diagnostic": {"train_corpus": "generated:nli@7:12", "features": "random:4"},
}
OTHER_TEXTS: Mapping[str, str] = {
    "features": "random:4@1,static",
    "classifiers": "linear,cnn",
    "label": "pos",
    "attack": "typos",
    "attacks": "typos",
    "head_sets": "1-1;1-2",
    "l0_penalties": "0.5",
    "function_corpus": "{folder}/other.conllu",
    "rank_by": "gradient,random",
    "corruptions": "P-Remove",
    "class_names": "a,b,c",
    "synonym_source": "static:tiny",
    "similarity_model": "tiny",
    "pos_corpus": "{folder}/other.conllu",
    "train_corpus": "{folder}/train.tsv",
    "train_format": "tsv",
    "train_format_option": "header=no",
    "ranks": "4",
}
"""Another value of each option that is a text."""
MAX_CHOICES = 2
SENTENCE = "1\t{word}\t{word}\t{pos}\t_\t_\t0\troot\t_\t_\n\n"


@cache
def run_inputs(name: str) -> RunInputs:
    match name:
        case "interventions/unanswerable_training":
            return RunInputs(load_corpus("generated:reading_comprehension@0:8"), load("tiny"))
        case "features/glue_diagnostic":
            return RunInputs(load_corpus("diagnostic", limit=20), load("tiny"))
        case "senses/subspace_probe":
            return RunInputs(planted_senses.sentences_with(load_corpus("english"), "bank", "match"), load("tiny"))
        case _:
            tagged = planted_corpus("sentence", 16, seed=5).map_sentences(
                lambda sentence: replace(sentence, pos=tuple(word[0].upper() for word in sentence.words))
            )
            return RunInputs(tagged, bag_of_words_classifier())


def other_values(option: Option, value: Any) -> Iterator[Any]:
    """Other values of an option; a text without one in the table is an error, so that new options are tested."""
    if option.choices and value in option.choices:
        yield from [choice for choice in option.choices if choice != value][:MAX_CHOICES]
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value + 1
    elif isinstance(value, float):
        yield value / 2 if value > 0 else 0.25
    else:
        yield OTHER_TEXTS[option.name]


def write_files(folder: Path, run_length: int) -> None:
    """Training texts, and two treebanks that tag the words of the model's vocabulary in runs of this length."""
    words = vocabulary_words(bag_of_words_classifier())
    for name, length in (("tags", 3), ("other", run_length)):
        tags = (("NOUN", "VERB")[number // length % 2] for number in range(len(words)))
        lines = (SENTENCE.format(word=word, pos=tag) for word, tag in zip(words, tags, strict=True))
        (folder / f"{name}.conllu").write_text("".join(lines), "utf-8")
    rows = [f"a text {run_length * number}\t{('bad', 'good')[number % 2]}\n" for number in range(12)]
    (folder / "train.tsv").write_text("".join(rows), "utf-8")


def outcome(analysis: Analysis, inputs: RunInputs, options: Mapping[str, Any]) -> Any:
    """All numbers of a run, or why it was refused."""
    (result,) = run_all([(analysis, options)], inputs, cache_results=True).outcomes
    return str(result) if isinstance(result, Refusal) else result.to_json()


def changed_runs(
    analysis: Analysis, folder: Path, changed: Mapping[str, Option]
) -> Iterator[tuple[str, RunInputs, dict[str, Any]]]:
    """The cheap run, then one run for each changed option, for another model and for other texts."""
    inputs = run_inputs(analysis.name)
    names = analysis.options.keys()
    cheap = {name: value for name, value in CHEAP.items() if name in names}
    cheap.update(CHEAP_BY_ANALYSIS.get(analysis.name, {}))
    base = {name: _in_folder(value, folder) for name, value in cheap.items()}
    yield "", inputs, base
    for name, option in changed.items():
        for value in other_values(option, cheap.get(name, option.default)):
            yield f"--{option.flag} {value}", inputs, base | {name: _in_folder(value, folder)}
    assert inputs.corpus is not None
    yield "other corpus", replace(inputs, corpus=replace(inputs.corpus, examples=inputs.corpus.examples[1:])), base
    yield "other model", replace(inputs, encoder=load("random:tiny@3")), base
    for name in sorted({"train_corpus", "pos_corpus", "function_corpus"} & names):
        yield f"--{name} with other content", inputs, base | {name: _in_folder(OTHER_TEXTS[name], folder)}


def _in_folder(value: Any, folder: Path) -> Any:
    return value.replace("{folder}", str(folder)) if isinstance(value, str) else value


def runs_that_differ(analysis: Analysis, folder: Path, changed: Mapping[str, Option]) -> list[str]:
    """The runs whose numbers from a store shared by all of them are not those without a store."""
    store = folder / "store"
    write_files(folder, 1)
    differing: list[str] = []
    for description, inputs, options in changed_runs(analysis, folder, changed):
        if description.endswith("other content"):
            write_files(folder, 2)
        expected = outcome(analysis, inputs, options)
        assert description or not isinstance(expected, str), expected
        if outcome(analysis, replace(inputs, store=store), options) != expected:
            differing.append(description)
    return differing


@pytest.mark.slow
@pytest.mark.parametrize("analysis", CACHING, ids=lambda a: a.name)
def test_a_store_changes_no_number(analysis: Analysis, tmp_path: Path) -> None:
    assert runs_that_differ(analysis, tmp_path, analysis.options) == []
    stored = sorted((tmp_path / "store" / FOLDER).iterdir())
    _, inputs, options = next(changed_runs(analysis, tmp_path, {}))
    outcome(analysis, replace(inputs, store=tmp_path / "store"), options)
    assert sorted((tmp_path / "store" / FOLDER).iterdir()) == stored, "what is stored is not computed again"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("left_out", "run"),
    [("attack", "--n-synonyms 6"), ("options", "--n-synonyms 6"), ("files", "--pos_corpus with other content")],
)
def test_an_argument_left_out_of_the_key_is_noticed(
    left_out: str, run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sweep above fails if what the search depends on, the options or the content of files are not in the key."""
    strict = cache_module.cache_key

    def incomplete(function: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
        return strict(function, {name: value for name, value in arguments.items() if name != left_out})

    for module in (cache_module, run_module):
        monkeypatch.setattr(module, "cache_key", incomplete)
    analysis = registry.get("interventions/word_substitution")
    options = {name: analysis.options[name] for name in ("n_synonyms", "pos_corpus", "sample_size")}
    assert run in runs_that_differ(analysis, tmp_path, options)


def double(number: int) -> int:
    return 2 * number


def test_a_value_is_computed_once_and_a_damaged_file_is_replaced(tmp_path: Path) -> None:
    cached, calls = AnalysisCache(tmp_path), list[int]()

    def compute(number: int) -> int:
        calls.append(number)
        return double(number)

    for number in (3, 3, 4):
        assert cached.get_or_compute(double, {"number": number}, partial(compute, number)) == 2 * number
    assert calls == [3, 4]
    for file in (tmp_path / FOLDER).iterdir():
        stored = json.loads(file.read_text("utf-8"))
        assert stored["value"] == 2 * stored["key"]["arguments"]["number"]
        file.write_bytes(file.read_bytes().replace(b'"value": ', b'"value": 1'))
    with pytest.warns(DamagedFileWarning, match="digest does not match. Its value is computed again"):
        assert cached.lookup(double, {"number": 3}) is None
    with pytest.warns(DamagedFileWarning):
        assert cached.call(double, number=3) == 6
    assert cached.call(double, number=3) == 6, "the damaged file was replaced"
    assert AnalysisCache().call(double, number=3) == 6


def test_a_nested_function_is_refused(tmp_path: Path) -> None:
    def nested(number: int) -> int:
        return number

    with pytest.raises(TypeError, match="not a function of a module"):
        AnalysisCache(tmp_path).call(nested, number=1)
