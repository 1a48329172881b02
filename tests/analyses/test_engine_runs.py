"""Analyses in workers: the same results as in one process, found in the store, and the same page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.planted_claims import write_claims

import bertology
from bertology.analyses import registry
from bertology.analyses.cache import AnalysisCache
from bertology.analyses.run import RunInputs, run_all
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from bertology.engines.engine import WorkerTask
from bertology.engines.local import LocalEngine
from bertology.errors import MachineError, Refusal
from bertology.progress import ProgressCallback, no_progress
from engines.here_engine import HereEngine
from warm_processes import warm_workers

NAMES = ("attention/entropy", "attention/targets", "geometry/contextuality")


def results_in(store: Path, **engine: Any) -> list[Any]:
    inputs = RunInputs(corpus=load_corpus("english", limit=12), encoder=load("tiny"), store=store, **engine)
    report = run_all([(registry.get(name), {}) for name in NAMES], inputs, cache_results=True)
    return [result.to_json() for result in report.results()]


def test_results_are_those_of_one_process_and_are_computed_once(tmp_path: Path) -> None:
    expected = results_in(tmp_path / "one")
    engine = HereEngine()
    assert json.dumps(results_in(tmp_path / "two", engine=engine)) == json.dumps(expected)
    shards = [label for label in engine.labels if label.startswith("shard")]
    analyses = [label for label in engine.labels if " of tiny on " in label and not label.startswith("shard")]
    assert len(shards) == 2, "of the model, and of the untrained one"
    assert sorted(analyses) == [f"{name} of tiny on english.conllu" for name in NAMES]
    again = HereEngine()
    assert results_in(tmp_path / "two", engine=again) == expected and again.labels == []


def test_a_failing_analysis_is_named_and_the_others_are_kept(tmp_path: Path) -> None:
    def fail(task: WorkerTask) -> None:
        if task.label.startswith("attention/targets"):
            raise ValueError("planted")

    with pytest.raises(MachineError, match=r"attention/targets of tiny on english\.conllu failed on here: ValueError"):
        results_in(tmp_path, engine=HereEngine(fail))
    engine = HereEngine()
    results_in(tmp_path, engine=engine)
    assert engine.labels == [], "one analysis is left, which needs no worker"


@pytest.mark.slow
def test_workers_find_the_keys_of_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What processes store is what this process looks up: it runs no analysis itself."""
    expected = results_in(tmp_path / "one")
    calls: list[str] = []
    from bertology.analyses import run

    compute = run._compute_result  # pyright: ignore[reportPrivateUsage]

    def counted(*given: Any) -> Any:
        calls.append(given[0].name)
        return compute(*given)

    monkeypatch.setattr(run, "_compute_result", counted)
    with warm_workers(), LocalEngine(2) as engine:
        assert results_in(tmp_path / "two", engine=engine) == expected
    assert calls == []


def test_a_page_has_the_same_bytes_with_an_engine(tmp_path: Path) -> None:
    write_claims(tmp_path / "planted.toml")

    def write(name: str, **engine: Any) -> bytes:
        return bertology.report(
            "tiny", "english", output=tmp_path / f"{name}.html", claims=tmp_path / "planted.toml", limit=12,
            max_unknown=1.0, store=tmp_path / name, **engine,
        ).read_bytes()  # fmt: skip

    engine = HereEngine()
    assert write("two", engine=engine) == write("one")
    assert any("attention/targets of tiny" in label for label in engine.labels)


def square(number: int) -> int:
    return number**2


def test_independent_parts_are_computed_by_workers(tmp_path: Path) -> None:
    engine = HereEngine()
    arguments = [{"number": number} for number in range(4)]
    cache = AnalysisCache(tmp_path, engine=engine)
    assert cache.call(square, number=2) == 4
    reported: list[tuple[int, int]] = []
    assert cache.call_all(square, arguments, meter=lambda done, total: reported.append((done, total))) == [0, 1, 4, 9]
    assert engine.labels == [f"part {number + 1} of 4 of square (number {number})" for number in (0, 1, 3)]
    assert reported[-1] == (4, 4)
    assert AnalysisCache(None).call_all(square, arguments, meter=no_progress) == [0, 1, 4, 9]


def test_an_engine_needs_a_store() -> None:
    for function in (
        lambda: bertology.run("attention/entropy", "tiny", "english", engine="local:2"),
        lambda: bertology.claims("tiny", "english", engine="local:2"),
    ):
        with pytest.raises(Refusal, match="An engine was given, and no store"):
            function()


def halves(number: int, progress: ProgressCallback) -> int:
    progress(1, 2)
    progress(2, 2)
    return number


def test_progress_within_each_call_is_progress_of_all(tmp_path: Path) -> None:
    cache, arguments = AnalysisCache(tmp_path), [{"number": number} for number in range(3)]
    reported: list[tuple[int, int]] = []

    def meter(done: int, total: int) -> None:
        reported.append((done, total))

    assert cache.call_all(halves, arguments, meter=meter, hand_on_progress=True) == [0, 1, 2]
    assert reported == [(done, 6) for done in (1, 2, 2, 3, 4, 4, 5, 6, 6)]


MODELS = ["tiny", "random:tiny@1", "random:tiny@2"]


def test_models_and_checkpoints_are_spread_over_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One task for each model, and the run itself finds all results in the store."""
    from bertology.analyses import run as run_module

    corpus = load_corpus("english", limit=12)
    expected = bertology.run("attention/entropy", MODELS, corpus, store=tmp_path / "one").to_json()
    pairs: dict[str, Any] = {"against": MODELS[1:], "store": tmp_path / "one"}
    expected_pairs = bertology.run("geometry/finetuning_change", "tiny", corpus, **pairs).to_json()
    engine = HereEngine()
    results = bertology.run("attention/entropy", MODELS, corpus, store=tmp_path / "two", engine=engine)
    assert engine.labels == MODELS and json.dumps(results.to_json()) == json.dumps(expected)
    again = HereEngine(lambda task: pytest.fail(task.label) if task.label.startswith("shard") else None)
    pairs |= {"store": tmp_path / "two", "engine": again}
    assert bertology.run("geometry/finetuning_change", "tiny", corpus, **pairs).to_json() == expected_pairs
    assert again.labels == MODELS[1:]

    def fail(*given: Any) -> None:
        pytest.fail(f"{given[0].name} is computed again")

    monkeypatch.setattr(run_module, "_compute_result", fail)
    bertology.run("attention/entropy", MODELS, corpus, store=tmp_path / "two", engine=HereEngine())


def test_claims_of_several_models_are_judged_by_workers(tmp_path: Path) -> None:
    write_claims(tmp_path / "planted.toml")
    given: dict[str, Any] = {"claims": tmp_path / "planted.toml", "limit": 12, "max_unknown": 1.0}
    expected = bertology.claims(MODELS, "english", store=tmp_path / "one", **given)
    engine = HereEngine()
    verdicts = bertology.claims(MODELS, "english", store=tmp_path / "two", engine=engine, **given)
    assert engine.labels == MODELS
    assert verdicts.to_json() == expected.to_json()
