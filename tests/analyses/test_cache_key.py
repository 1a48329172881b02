"""Keys of the cache: different content, different key; the same content, the same key; unknown types are refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bertology.analyses import cache_key as cache_key_module
from bertology.analyses.cache_key import cache_key, code_digest, describe_value, files_in_options
from bertology.corpus.read import as_corpus
from bertology.encoder.attention_hook import Gates
from bertology.encoder.encoder import TaskEncoder
from bertology.encoder.load import load


@dataclass(frozen=True)
class Point:
    x: Any
    y: Any = 0


@dataclass(frozen=True)
class OtherPoint:
    x: Any
    y: Any = 0


def closure_over(value: object) -> Callable[[], object]:
    def inner() -> object:
        return value

    return inner


def power(base: float, exponent: float = 2) -> float:
    return base**exponent


VALUES: list[Any] = [
    None, True, False, 0, 1, 1.0, -0.0, 0.0, "", "1", "None", b"1", (), (1, 2), (2, 1), ((1,), 2), {"a": 1, "b": 2},
    {"b": 2, "a": 1}, {"a": "1"}, {1, 2}, np.int64(1), np.float32(1), np.zeros(2), np.zeros((2, 1)), np.ones(2),
    np.ones(2, np.float32), torch.ones(2), torch.ones(2).half(), torch.zeros(0), Point(1), Point(2), Point(1, 1),
    OtherPoint(1), Point(Point(1)), Point(np.zeros(2)), closure_over(1), closure_over(2), closure_over(np.zeros(1)),
    power, partial(power, 1), partial(power, base=1), partial(power, 1, exponent=3), "a".join, "b".join, len, int,
    float, as_corpus(["one text"]), as_corpus(["another text"]), Path("missing"),
]  # fmt: skip


def test_different_values_have_different_descriptions() -> None:
    described = [repr(describe_value(value)) for value in VALUES]
    assert len(set(described)) == len(described)


def test_equal_content_has_the_same_description() -> None:
    for make in (
        lambda: Point(np.arange(3.0), {"a": (1, "b")}),
        lambda: as_corpus(["one text", ("a pair", "of texts")]),
        lambda: closure_over(torch.arange(4)),
        lambda: {"x", "y", "z"},
    ):
        assert describe_value(make()) == describe_value(make())


def test_texts_that_are_split_late_are_described_as_their_words() -> None:
    corpus = as_corpus(["one text", "another text"])
    split = replace(corpus, examples=tuple(corpus))
    in_tuples = split.map_sentences(lambda sentence: replace(sentence, offsets=tuple(sentence.offsets)))
    assert describe_value(corpus) == describe_value(split) == describe_value(in_tuples)


def test_the_content_of_an_encoder_counts_and_not_its_name() -> None:
    first, second = load("tiny"), load("random:tiny@1")
    assert isinstance(first, TaskEncoder)
    renamed: Any = replace(first, name="another name")  # type: ignore[type-var]  # a dataclass
    assert describe_value(first) == describe_value(renamed) != describe_value(second)
    gated = first.with_gates(Gates(scale=torch.zeros(first.layers, first.heads)))
    assert describe_value(gated) != describe_value(first)


def test_an_unknown_type_is_refused() -> None:
    for value in (object(), np.array([object()]), iter(()), np.random.default_rng(0), Point(object())):
        with pytest.raises(TypeError):
            describe_value(value)


def test_files_count_by_content(tmp_path: Path) -> None:
    file = tmp_path / "treebank.conllu"
    file.write_text("one", "utf-8")
    options: dict[str, Any] = {"train_corpus": str(file), "features": f"model,glove:{file}#3", "n": 3}
    first, as_path = files_in_options(options), describe_value(file)
    assert first.keys() == {str(file)}
    file.write_text("two", "utf-8")
    assert files_in_options(options).keys() == first.keys() and files_in_options(options) != first
    assert describe_value(file) != as_path
    folder = describe_value(tmp_path)
    (tmp_path / "more").write_text("", "utf-8")
    assert describe_value(tmp_path) != folder
    assert files_in_options({"features": "model,static,random", "layer": 1, "text": "no\0file"}) == {}


def test_the_key_names_function_arguments_code_and_versions() -> None:
    key = cache_key(power, {"base": 2, "exponent": np.zeros(10_000)})
    assert key["function"].endswith("test_cache_key.power") and key["arguments"]["base"] == 2
    assert key["code"].startswith(code_digest("bertology")) and key["versions"]["numpy"] == np.__version__
    long = cache_key(power, {"base": list(range(1000))})["arguments"]["base"]
    assert long.keys() == {"digest"}, "a long argument is stored as its digest"


STORED_ENTROPY = """
import sys
from bertology.analyses import registry
from bertology.analyses.run import RunInputs, run_all
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from pathlib import Path
inputs = RunInputs(corpus=load_corpus("english", limit=3), encoder=load("tiny"), store=Path(sys.argv[1]))
run = run_all([(registry.get("attention/entropy"), {})], inputs, cache_results=True)
print(len(run.elapsed), float(run.results()[0].data.measures["entropy"].high[0, 0]))
"""
"""Prints how many steps were computed, and a number that depends on the bootstrap."""


@pytest.mark.slow
def test_a_changed_helper_is_noticed_without_a_new_version(tmp_path: Path) -> None:
    """The level of all intervals is changed in a copy of the package, and no version is raised."""
    package = Path(cache_key_module.__file__).parents[1]
    shutil.copytree(package, tmp_path / "bertology", ignore=shutil.ignore_patterns("__pycache__"))

    def run() -> tuple[int, float]:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        line = [sys.executable, "-c", STORED_ENTROPY, str(tmp_path / "store")]
        done = subprocess.run(line, env=environment, capture_output=True, text=True, check=True)
        n_computed, number = done.stdout.split()
        return int(n_computed), float(number)

    first = run()
    assert first[0] and run() == (0, first[1]), "found in the store"
    command_line = tmp_path / "bertology" / "cli" / "main.py"
    command_line.write_text(command_line.read_text("utf-8") + "# changed\n", "utf-8")
    assert run() == (0, first[1]), "no number depends on the command line"
    helper = tmp_path / "bertology" / "estimates" / "resampling.py"
    text = helper.read_text("utf-8")
    assert "\nLEVEL = 0.95\n" in text
    helper.write_text(text.replace("\nLEVEL = 0.95\n", "\nLEVEL = 0.5\n"), "utf-8")
    changed = run()
    assert changed[0] and changed[1] < first[1], "a smaller interval, and not the stored one"
