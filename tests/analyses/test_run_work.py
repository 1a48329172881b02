"""The work of runs, claims, atlases and trainings is estimated first; beyond the bound nothing is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.planted_claims import write_claims

import bertology
from bertology.analyses import registry, run_work
from bertology.analyses.run import RunInputs, run_all
from bertology.analyses.run_work import estimate_missing_run, estimate_run
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from bertology.errors import CostError
from bertology.recording import recording_work
from command import bertology as run_bertology

TOO_SHORT = 1e-9
ENTROPY = registry.get("attention/entropy")


@pytest.fixture
def inputs(tmp_path: Path) -> RunInputs:
    return RunInputs(corpus=load_corpus("english", limit=12), encoder=load("tiny"), store=tmp_path / "store")


@pytest.mark.parametrize("name", ["run", "claims", "report", "atlas", "finetune", "record"])
def test_every_command_refuses_work_beyond_its_bound(name: str, tmp_path: Path) -> None:
    train = tmp_path / "train.tsv"
    train.write_text("sentence\tlabel\n" + "".join(f"a text {n}\t{'ab'[n % 2]}\n" for n in range(20)))
    claims = ["--claims", str(write_claims(tmp_path / "claims.toml")), "--limit", "8", "--max-unknown-tokens", "1"]
    output = ["-o", str(tmp_path / "output")]
    arguments = {
        "run": ["attention/entropy", "-m", "tiny", "--limit", "8"],
        "claims": ["tiny", *claims],
        "report": ["tiny", *claims, *output],
        "atlas": ["tiny", "random:tiny@1", *claims, "-o", str(tmp_path / "output.html")],
        "finetune": ["tiny", str(train), "--task", "sentence", *output],
        "record": ["tiny", "english", "--limit", "8", "--sites", "attention", *output],
    }
    done = run_bertology(name, *arguments[name], "--max-hours", str(TOO_SHORT))
    assert done.status == 2 and not done.out, done.err
    last = done.err.strip().splitlines()[-1]
    assert "takes about" in last and "Expected at most 1e-09 hours." in last and "--max-hours 1;" in last
    assert not list(tmp_path.rglob("*.safetensors")) and not (tmp_path / "output.html").exists()


def test_so_do_the_functions_of_python() -> None:
    texts = load_corpus("english", limit=8)
    with pytest.raises(CostError, match="max_hours=1"):
        bertology.run("attention/entropy", "tiny", texts, max_hours=TOO_SHORT)
    with pytest.raises(CostError, match="max_hours=1"):
        bertology.claims("tiny", texts, papers="clark2019", max_unknown=1.0, max_hours=TOO_SHORT)
    with pytest.raises(CostError, match="max_hours=1"):
        bertology.record("tiny", texts, ["attention"], max_hours=TOO_SHORT)


def test_stored_results_are_no_work(inputs: RunInputs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_work, "MESSAGE_SECONDS", 0.0)
    request = (ENTROPY, ENTROPY.resolve_options({}))
    assert estimate_missing_run([request], inputs).seconds > 0
    run_all([request], inputs, cache_results=True)
    assert estimate_missing_run([request], inputs).seconds == 0


def test_a_slower_pass_makes_the_analyses_longer(inputs: RunInputs, monkeypatch: pytest.MonkeyPatch) -> None:
    request = (ENTROPY, ENTROPY.resolve_options({}))
    declared = ENTROPY.cost.estimate(100)
    fast = estimate_run([request], inputs).seconds
    monkeypatch.setattr(recording_work, "WORK_PER_SECOND", 1.0)
    monkeypatch.setattr(recording_work, "SMALL_SECONDS", 1e20)
    slow = estimate_run([request], inputs).seconds
    assert run_work.MIN_FACTOR * declared <= fast < 60 < slow


def test_an_untrained_model_is_a_second_pass(inputs: RunInputs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording_work, "SMALL_BYTES", 0.0)
    request = (ENTROPY, ENTROPY.resolve_options({}))
    both = estimate_run([request], inputs)
    alone = estimate_run([request], RunInputs(inputs.corpus, inputs.encoder, random_baseline=False))
    assert both.n_bytes == pytest.approx(2 * alone.n_bytes) and alone.n_bytes > 0
