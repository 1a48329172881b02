"""Every kind of file that is kept: a flipped bit or a cut is refused, or told and made anew; never another number.

A kind that is kept and is not among `kinds` fails the last test.
"""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.recording.material import mixed, tiny

from bertology.analyses import registry
from bertology.analyses.cache import AnalysisCache
from bertology.analyses.frozen_features.extractors import feature_extractor
from bertology.analyses.frozen_features.word_features import extract_cached
from bertology.analyses.run import RunInputs, run_all
from bertology.checked_files import write_checked_json
from bertology.corpus.stream import stream_corpus
from bertology.errors import DamagedFileWarning, Refusal
from bertology.recording.manifest import open_recording
from bertology.recording.recorder import record
from bertology.recording.stream_parts import STREAM_FILE
from bertology.server.jobs import REFUSAL_FILE, RESULT_FILE, JobFolder, JobRequest, write_report_digest
from bertology.server.problems import describe_problem
from bertology.training.checkpointer import Checkpointer
from bertology.training.finetune import finetune
from bertology.training.loop import TrainingConfig
from bertology.training.run_directory import RunDirectory
from planted_tasks import planted_corpus

N_FLIPS, N_CUTS = 36, 4
CORPUS = mixed(6)
SITES = ["attention", "hidden"]
LEFT_OUT = "left out, with a message"


@dataclass(frozen=True)
class Kind:
    """A kind of kept file: where such files are, and how the project reads them back."""

    name: str
    files: tuple[Path, ...]
    read: Callable[[], Any]


def number_of_letters(text: str) -> int:
    return len(text)


def _recordings(root: Path) -> Iterator[Kind]:
    record(tiny(), CORPUS, SITES, store=root)
    [folder] = root.iterdir()

    def read() -> Any:
        recording = open_recording(folder)
        arrays = {site: [array.tobytes() for array in recording[site]] for site in SITES}
        return arrays, recording.corpus.fingerprint, [recorded.tokens.tokens for recorded in recording.inputs]

    for name in ("manifest.json", "inputs.jsonl", "corpus.jsonl"):
        yield Kind(name, (folder / name,), read)
    yield Kind("shards", tuple(folder.glob("*/*.safetensors")), read)


def _streams(root: Path) -> Iterator[Kind]:
    texts = root.with_name("texts.txt")
    texts.write_text("The cat sat .\nA dog ran home .\nYes .\n")
    record(tiny(), stream_corpus(texts, part_size=2), ["hidden"], folder=root)
    texts.unlink()

    def read() -> Any:
        recording = open_recording(root)
        return [array.tobytes() for array in recording["hidden"]], recording.summary(), list(recording.corpus)

    yield Kind("lists of parts", (root / STREAM_FILE,), read)
    yield Kind("parts of streams", tuple(file for file in root.glob("*/**/*") if file.is_file()), read)


def _results(root: Path) -> Iterator[Kind]:
    inputs = RunInputs(corpus=CORPUS, encoder=tiny(), store=root, random_baseline=False)

    def read_result() -> Any:
        [result] = run_all([(registry.get("attention/entropy"), {})], inputs, cache_results=True).results()
        kept: Any = result.data
        return result.to_json(), [
            values.tobytes() + n_rows.tobytes() for values, n_rows in kept.kept_resamples.values()
        ]

    read_result()
    [result] = root.glob("analysis_cache/*.json")
    yield Kind("results", (result,), read_result)
    yield Kind("resampled values of results", (result.with_suffix(".npz"),), read_result)


def _parts(root: Path) -> Iterator[Kind]:
    parts = AnalysisCache(root / "parts")
    parts.call(number_of_letters, text="a text")
    [part] = (root / "parts").glob("*/*.json")
    yield Kind("finished parts", (part,), lambda: parts.call(number_of_letters, text="a text"))
    features = AnalysisCache(root / "features")
    sentences = [sentence for example in CORPUS for sentence in example.segments]

    def read_features() -> Any:
        extracted = extract_cached(feature_extractor("tiny"), sentences, features)
        return extracted.fingerprint, dict(extracted.counts)

    read_features()
    yield Kind("counts of features", tuple((root / "features").glob("*/*.json")), read_features)
    yield Kind("vectors of features", tuple((root / "features").glob("*/*.npz")), read_features)


def _jobs(root: Path) -> Iterator[Kind]:
    jobs = JobFolder(root / "workbench" / "jobs")
    job = jobs.create(JobRequest(kind="report", model="tiny", corpus="english"), {}, root, None)
    folder = jobs.path(job.id)
    write_checked_json(folder / RESULT_FILE, {"value": 0.25})
    write_checked_json(folder / REFUSAL_FILE, describe_problem(Refusal("It rains", "sun", "Wait")).model_dump())
    (folder / "report.html").write_text("<title>The report</title>")
    write_report_digest(folder / "report.html")
    yield Kind("jobs", (folder / "job.json",), lambda: list(jobs.jobs()) or LEFT_OUT)
    yield Kind("results of jobs", (folder / RESULT_FILE,), lambda: jobs.result_text(job.id))
    yield Kind("refusals of jobs", (folder / REFUSAL_FILE,), lambda: jobs.refusal(job.id))
    files = folder / "report.html", folder / "report.json"
    yield Kind("reports of jobs", files, lambda: jobs.report_text(job.id))


def _runs(root: Path) -> Iterator[Kind]:
    corpus, config = planted_corpus("sentence", 24), TrainingConfig(epochs=2, learning_rate=3e-3, batch_size=8)

    def run(folder: str, progress: Any = None) -> Any:
        return finetune("tiny", corpus, "sentence", root / folder, config=config, seconds=0.0, progress=progress)

    def interrupt(_title: str) -> Callable[[int, int], None]:
        def update(step: int, n_steps: int) -> None:
            if step == n_steps - 1:
                raise KeyboardInterrupt

        return update

    finished = run("finished")
    files = tuple(file for file in finished.directory.iterdir() if file.is_file())
    done = RunDirectory(finished.directory, {name: finished.metadata[name] for name in finished.metadata})
    with pytest.raises(KeyboardInterrupt):
        run("interrupted", interrupt)
    training = root / "interrupted" / "training"
    checkpointer = Checkpointer(training)
    yield Kind("finished models", files, done.finished_metadata)
    stopped = RunDirectory(root / "interrupted", {})
    yield Kind("run.json", (training / "run.json",), lambda: _read_key(stopped))
    yield Kind("state.pt", (training / "state.pt",), lambda: repr(checkpointer.latest()))
    [best] = training.glob("best-*.pt")
    yield Kind("best weights", (best,), lambda: repr(checkpointer.load_best(int(best.stem.split("-")[1]))))


def _read_key(directory: RunDirectory) -> str:
    """The stored key, by the refusal of an empty one; a damaged file is refused otherwise."""
    with pytest.raises(Refusal) as refused:
        directory.finished_metadata()
    if "digest does not match" in str(refused.value):
        raise refused.value
    return str(refused.value)


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> list[Kind]:
    root = tmp_path_factory.mktemp("kept")
    makers = {
        "store": _recordings, "streams": _streams, "results": _results, "parts": _parts, "server": _jobs, "runs": _runs,
    }  # fmt: skip
    return [kind for name, make in makers.items() for kind in make(root / name)]


def _damaged_contents(intact: bytes, rng: random.Random) -> Iterator[bytes]:
    for _ in range(N_FLIPS):
        position = rng.randrange(len(intact))
        yield intact[:position] + bytes([intact[position] ^ (1 << rng.randrange(8))]) + intact[position + 1 :]
    for _ in range(N_CUTS):
        yield intact[: rng.randrange(len(intact))]


def _outcome(kind: Kind, expected: Any) -> str:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found = kind.read()
        except Refusal:
            return "refused"
        except Exception as error:
            return f"traceback: {error!r}"
    if not any(issubclass(warning.category, DamagedFileWarning) for warning in told):
        return "silent"
    return "made anew" if found == expected else LEFT_OUT if found is LEFT_OUT else "another value"


def test_no_flipped_bit_and_no_cut_is_read_as_if_nothing_had_happened(kinds: list[Kind]) -> None:
    outcomes: Counter[str] = Counter()
    for kind in kinds:
        expected, rng = kind.read(), random.Random(kind.name)
        files = {file: file.read_bytes() for file in kind.files}
        assert expected == kind.read(), f"{kind.name} is read twice alike"
        for number in range(N_FLIPS + N_CUTS):
            file = rng.choice(sorted(files))
            file.write_bytes(list(_damaged_contents(files[file], rng))[number])
            outcome = _outcome(kind, expected)
            assert outcome in {"refused", "made anew", LEFT_OUT}, (
                f"{kind.name}, damage {number} of {file.name}: {outcome}"
            )
            outcomes[outcome] += 1
            file.write_bytes(files[file])
    assert sum(outcomes.values()) == len(kinds) * (N_FLIPS + N_CUTS) and len(kinds) * N_FLIPS >= 500
    assert outcomes["refused"] and outcomes["made anew"] and outcomes[LEFT_OUT]


def test_every_kept_file_is_of_a_kind_that_is_damaged_here(kinds: list[Kind]) -> None:
    tested = {file for kind in kinds for file in kind.files}
    root = kinds[0].files[0].parents[2]
    kept = {file for file in root.rglob("*") if file.is_file()}
    recorded = {file for file in kept if file.is_relative_to(root / "results") and "analysis_cache" not in file.parts}
    assert recorded and kept - tested - recorded == set(), "the recordings of results are like those in the store"
