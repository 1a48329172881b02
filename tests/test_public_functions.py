"""The public functions: wrong types are refused in words, progress is shown to people, interruptions resume."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import bertology
from bertology import public_functions
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.errors import Refusal

LABELLED = "tasks:bigram_shift:english"
TEXTS = ["The cat sat.", "A dog ran home."]


api: Any = bertology
"""The package without its types, to be used wrongly."""


class Odd:
    """A value of a type that no function takes."""


VALID: dict[str, dict[str, Any]] = {
    "load": {"model": "tiny"},
    "read": {"path": "english"},
    "run": {"analysis": "attention/entropy", "encoder": "tiny", "corpus": TEXTS},
    "claims": {"encoder": "tiny", "corpus": TEXTS},
    "compare": {"encoders": ["tiny"], "corpus": TEXTS},
    "atlas": {"models": ["tiny"], "corpus": TEXTS},
    "report": {"encoder": "tiny", "corpus": TEXTS},
    "record": {"encoder": "tiny", "corpus": TEXTS, "sites": ["hidden"]},
    "record_slice": {"encoder": "tiny", "corpus": TEXTS, "sites": ["hidden"], "slice": "1/2"},
    "finetune": {"model": "tiny", "data": "english", "task": "token", "output": "out"},
    "probe": {"encoder": "tiny", "corpus": "english", "label": "pos"},
    "states": {"encoder": "tiny", "corpus": "english", "label": "pos"},
    "view": {"model": "tiny", "text": "A cat."},
    "open_recording": {"path": "folder"},
    "read_claims": {"file": "claims.toml"},
    "corpus": {"data": TEXTS},
}
CHECKED_LATER = {"against", "tokenizer", "data", "validation", "test"}
"""Arguments of many types, which the function itself refuses; some of them only where others are right."""


def parameters() -> list[tuple[str, str]]:
    import inspect

    cases: list[tuple[str, str]] = []
    for name in VALID:
        function = getattr(bertology, name)
        called = getattr(function, "__wrapped__", None)
        if called is None:  # a package that is a function
            continue
        for parameter in inspect.signature(called).parameters.values():
            if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                cases.append((name, parameter.name))
    return cases


@pytest.mark.parametrize(("function", "parameter"), parameters())
def test_a_wrong_type_is_refused(
    function: str, parameter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if parameter in CHECKED_LATER:
        pytest.skip("takes models or data of many types; see the tests of as_encoder and as_corpus")
    with pytest.raises(Refusal):
        getattr(bertology, function)(**{**VALID[function], parameter: Odd()})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: api.run(5, "tiny", TEXTS), r"given analysis as int \(5\). Expected a string or a list"),
        (lambda: api.run("attention/entropy", 5, TEXTS), "A model was given as int"),
        (lambda: api.run("attention/entropy", "tiny", 5), "A corpus was given as int"),
        (lambda: api.run("attention/entropy", "tiny", TEXTS, seed="x"), "--seed was given 'x'"),
        (lambda: api.run("attention/entropy", "tiny", TEXTS, seed=True), "--seed was given True"),
        (
            lambda: api.run("probes/sentence", "tiny", LABELLED, pooling="max"),
            "no value of --pooling called 'max'",
        ),
        (lambda: api.record("tiny", TEXTS, "hidden"), "given sites as str"),
        (lambda: api.claims("tiny", TEXTS, papers=5), "given papers as int"),
        (lambda: api.corpus(5), "A corpus was given as int"),
        (lambda: api.load(), "missing a required argument: 'model'"),
        (lambda: api.load("tiny", devise="cpu"), "no argument of bertology.load called 'devise'.*'device'"),
        (lambda: api.finetune("tiny", Odd(), "token", "out"), "A corpus was given as Odd"),
        (lambda: api.finetune(Odd(), "english", "token", "out"), "A model was given as Odd"),
    ],
)
def test_refusals_say_what_was_given_and_what_is_expected(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(Refusal, match=message):
        call()


def test_what_is_annotated_is_accepted() -> None:
    def function(
        a: int, b: float = 0.0, c: str | None = None, d: list[str] | tuple[str, ...] = (), *, e: Any = 0
    ) -> int:
        return a

    checked: Callable[..., int] = public_functions.public_function(function)
    assert checked(np.int64(3), 2, None, ["x"], e=Odd()) == checked(3, np.float32(2.0), "x", ("x",)) == 3
    for wrong in ({"a": "3"}, {"a": 3, "b": "x"}, {"a": 3, "c": 4}, {"a": 3, "d": "x"}, {"a": 3, "d": [1]}):
        with pytest.raises(Refusal, match="was given"):
            checked(**wrong)


def test_wrong_arguments_of_methods_are_refused_too() -> None:
    encoder = bertology.load("tiny")
    assert isinstance(encoder, HuggingFaceEncoder)
    result = bertology.run("attention/entropy", encoder, TEXTS)
    arguments: dict[str, Any] = {"hiden": print}
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: encoder.hooked(**arguments), "no argument of HuggingFaceEncoder.hooked called 'hiden'.*'hidden'"),
        (lambda: result["entropy"].best("3"), "Measure.best was given n as str"),  # pyright: ignore[reportArgumentType]
        (lambda: result["entropy"].above(3), "Measure.above was given baseline as int"),  # pyright: ignore[reportArgumentType]
        (lambda: result.to_latex(n_best="3"), "Result.to_latex was given n_best as str"),  # pyright: ignore[reportArgumentType]
        (lambda: bertology.AnalysisCallback(None, "attention/entropy", TEXTS, every="5"), "AnalysisCallback was given"),  # pyright: ignore[reportArgumentType]
    ]  # fmt: skip
    for call, message in calls:
        with pytest.raises(Refusal, match=message):
            call()
    with pytest.raises(Refusal, match="values for: trainer, analyses, corpus"):
        bertology.AnalysisCallback()  # pyright: ignore[reportCallIssue]


def test_every_public_function_is_checked() -> None:
    for name in bertology.__all__:
        value = getattr(bertology, name)
        if isinstance(value, FunctionType):
            assert value is public_functions.public_function(vars(value)["__wrapped__"]), name


def test_progress_is_shown_where_a_person_watches(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bertology.run("attention/entropy", "tiny", TEXTS)
    bertology.record("tiny", TEXTS, ["hidden"])
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    bertology.run("attention/entropy", "tiny", TEXTS)
    assert "recording tiny" in capsys.readouterr().err
    bertology.record("tiny", TEXTS, ["hidden"])
    assert "recording" in capsys.readouterr().err
    calls: list[str] = []

    def start(title: str) -> Callable[[int, int], None]:
        calls.append(title)
        return lambda done, total: None

    bertology.run("attention/entropy", "tiny", TEXTS, progress=start)
    assert "recording tiny" in calls and "recording tiny" not in capsys.readouterr().err


class Interruption:
    """Progress that interrupts a computation at its n-th report."""

    def __init__(self, n: int) -> None:
        self.left = n

    def __call__(self, title: str) -> Callable[[int, int], None]:
        return self.update

    def update(self, done: int, total: int) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("n", [1, 2, 3])
def test_an_interrupted_recording_resumes_to_the_same_arrays(n: int, tmp_path: Path) -> None:
    corpus = bertology.read("english")[:150]
    whole = bertology.record("tiny", corpus, ["hidden"])
    config = bertology.RecordingConfig()
    with pytest.raises(KeyboardInterrupt):
        bertology.record("tiny", corpus, ["hidden"], config=config, store=tmp_path, progress=Interruption(n).update)
    resumed = bertology.record("tiny", corpus, ["hidden"], config=config, store=tmp_path)
    assert len(resumed) == len(whole)
    for first, second in zip(whole["hidden"], resumed["hidden"], strict=True):
        np.testing.assert_array_equal(np.asarray(first), np.asarray(second))


@pytest.mark.parametrize("n", [1, 3, 5])
def test_an_interrupted_run_resumes_to_the_same_result(n: int, tmp_path: Path) -> None:
    corpus = bertology.read("english")[:150]
    whole = bertology.run(["attention/entropy", "attention/targets"], "tiny", corpus, store=tmp_path / "whole")
    store = tmp_path / "store"
    with pytest.raises(KeyboardInterrupt):
        bertology.run(["attention/entropy", "attention/targets"], "tiny", corpus, store=store, progress=Interruption(n))
    resumed = bertology.run(["attention/entropy", "attention/targets"], "tiny", corpus, store=store)
    assert resumed.to_json() == whole.to_json()


def test_an_interrupted_fine_tuning_resumes_to_the_same_weights(tmp_path: Path) -> None:
    from bertology.training.loop import TrainingConfig

    arguments: dict[str, Any] = {"config": TrainingConfig(epochs=2), "seconds": 0.0}
    corpus = bertology.read("english")[:60]
    bertology.finetune("tiny", corpus, "token", tmp_path / "whole", **arguments)
    with pytest.raises(KeyboardInterrupt):
        bertology.finetune("tiny", corpus, "token", tmp_path / "parts", progress=Interruption(5), **arguments)
    assert not (tmp_path / "parts" / "finetuning.json").exists()
    bertology.finetune("tiny", corpus, "token", tmp_path / "parts", **arguments)
    files = [tmp_path / name / "model.safetensors" for name in ("whole", "parts")]
    assert files[0].read_bytes() == files[1].read_bytes()
