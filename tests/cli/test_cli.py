"""The command line: results on stdout, messages on stderr, user errors in one paragraph with exit status 2."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bertology.results.result import Result
from command import CommandResult, bertology

TREE = """# text = Dogs bark.
1\tDogs\tdog\tNOUN\tNNS\t_\t2\tnsubj\t_\t_
2\tbark\tbark\tVERB\tVBP\t_\t0\troot\t_\tSpaceAfter=No
3\t.\t.\tPUNCT\t.\t_\t2\tpunct\t_\t_

"""


@pytest.fixture
def treebank(tmp_path: Path) -> Path:
    file = tmp_path / "dogs.conllu"
    file.write_text(TREE + TREE.replace("Dogs", "Cats"), "utf-8")
    return file


def refused(ended: CommandResult, *mentions: str) -> None:
    """One paragraph on stderr, nothing on stdout, exit 2, no traceback."""
    assert ended.status == 2, ended
    assert ended.out == ""
    paragraph = ended.err.strip().splitlines()[-1]
    assert paragraph.startswith("bertology: ")
    assert "Traceback" not in ended.err
    for mention in mentions:
        assert mention in paragraph, paragraph


def test_run_prints_one_json_object(treebank: Path) -> None:
    ended = bertology("run", "attention/entropy", "--model", "tiny", "--corpus", str(treebank), "--json")
    assert ended.status == 0, ended.err
    result = Result.from_json(ended.out)
    assert result.analysis == "attention/entropy" and result.n == 2
    assert set(result.to_json()["baselines"]) == {"uniform attention", "untrained model"}


def test_run_prints_tables_for_people(treebank: Path) -> None:
    ended = bertology("run", "attention/targets", "--model", "tiny", "--corpus", str(treebank))
    assert ended.status == 0, ended.err
    assert "attention to [SEP]" in ended.out and "uniform attention" in ended.out and "n = 2" in ended.out


def test_a_second_run_is_instant_and_says_so(treebank: Path) -> None:
    words = ("run", "attention/entropy", "--model", "tiny", "--corpus", str(treebank), "--json")
    first, second = bertology(*words), bertology(*words)
    assert first.out == second.out
    assert "stored recording" not in first.err
    assert "stored recording" in second.err


def test_analysis_options_are_parsed_and_recorded(treebank: Path) -> None:
    ended = bertology("run", "attention/entropy", "-m", "tiny", "-c", str(treebank), "--seed", "5", "--json")
    assert json.loads(ended.out)["options"] == {"seed": 5}
    ended = bertology("run", "attention/entropy", "-m", "tiny", "-c", str(treebank), "--seed=6", "--json")
    assert json.loads(ended.out)["options"] == {"seed": 6}


def test_a_recording_stands_in_for_model_and_corpus(treebank: Path, tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    sites = "attention,attention.entropy"
    assert bertology("record", "tiny", str(treebank), "--sites", sites, "-o", str(folder)).status == 0
    direct = bertology("run", "attention/entropy", "-m", "tiny", "-c", str(treebank), "--no-random-baseline", "--json")
    replayed = bertology("run", "attention/entropy", "--recording", str(folder), "--json")
    assert json.loads(replayed.out)["data"] == json.loads(direct.out)["data"]
    derived = bertology("run", "attention/targets", "--recording", str(folder), "--json")
    assert derived.status == 0, derived.err


@pytest.mark.parametrize("suffix", ["svg", "png", "html"])
def test_a_figure_is_saved_beside_the_numbers(treebank: Path, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"entropy.{suffix}"
    words = ("run", "attention/entropy", "-m", "tiny", "-c", str(treebank), "--json", "--figure", str(path))
    ended = bertology(*words, "--theme", "dark")
    assert ended.status == 0, ended.err
    assert json.loads(ended.out)["analysis"] == "attention/entropy"
    assert str(path) in ended.err and path.stat().st_size > 1000


def test_a_figure_that_cannot_be_saved_is_refused_before_the_work(
    treebank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("run", "attention/entropy", "-m", "tiny", "-c", str(treebank), "--figure")
    refused(bertology(*words, "figure.pdf"), ".pdf", ".svg, .png, .html")
    refused(bertology(*words, str(tmp_path / "no" / "figure.svg")), "figure.svg")
    refused(bertology(*words, "figure.svg", "--theme", "blue"), "light", "dark")
    monkeypatch.setitem(sys.modules, "vl_convert", None)


@pytest.mark.parametrize("what", ["analyses", "models", "corpora", "sites", "claims"])
def test_lists_are_readable_and_json(what: str) -> None:
    assert bertology("list", what).out
    assert all(row["name"] and row["description"] for row in json.loads(bertology("list", what, "--json").out))


def test_help_of_an_analysis_names_its_options() -> None:
    ended = bertology("run", "attention/entropy", "--help")
    assert ended.status == 0
    assert "--seed" in ended.out and "Random seed" in ended.out and "--model" in ended.out


def test_the_report_is_one_page(treebank: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    ended = bertology("report", "tiny", "--corpus", str(treebank), "-o", str(page), "--no-store")
    assert ended.status == 0, ended.err
    html = page.read_text("utf-8")
    assert ended.out.strip() == str(page)
    assert "random" in html and "<svg" in html and "src=" not in html


def test_several_models_are_compared_in_one_table(treebank: Path) -> None:
    words = ("--model", "tiny", "--against", "tiny", "--against", "random:tiny@3", "--measures", "rsa", "--json")
    ended = bertology("run", "geometry/representation_similarity", *words, "--corpus", str(treebank), "--no-store")
    assert ended.status == 0, ended.err
    record = json.loads(ended.out)
    assert record["shape"] == "Matrix"
    same, other = next(iter(record["data"]["measures"].values()))["value"]
    assert min(same) > 0.999 and max(other) < 0.9


def test_user_errors_are_explained_in_one_paragraph(treebank: Path, tmp_path: Path) -> None:
    corpus = ("--corpus", str(treebank))
    refused(bertology("run", "attention/entropi", *corpus), "attention/entropy")
    refused(bertology("run", "attention/entropy", "--model", "tyny", *corpus), "tiny")
    refused(bertology("run", "attention/entropy", "--corpus", str(tmp_path / "nowhere.conllu")), "nowhere.conllu")
    refused(bertology("run", "attention/entropy", *corpus, "--sede", "1"), "seed")
    refused(bertology("run", "attention/entropy", *corpus, "--seed", "one"), "--seed", "one")
    refused(bertology("run", "attention/entropy", *corpus, "--seed"), "--seed")
    refused(bertology("run", "attention/entropy", *corpus, "--format", "conlu"), "conllu")
    refused(bertology("run", "attention/entropy", "--recording", str(tmp_path)), "manifest")
    refused(bertology("run", "attention/entropy", *corpus, "--device", "cuda"), "cpu")
    refused(bertology("run", "attention/entropy", *corpus, "--device", "gpu7"), "cpu")
    refused(bertology("record", "tiny", str(treebank), "--sites", "atention", "-o", str(tmp_path / "r")), "attention")
    refused(bertology("run", "attention/entropy", "--model", "random-vectors:8", *corpus), "attention")
    refused(bertology("report", "tiny", *corpus, "-o", str(tmp_path / "no" / "page.html")), "page.html")
    refused(bertology("frobnicate"), "frobnicate")
    refused(bertology("new", "Bad Name"), "group/name")


def test_a_wrong_option_is_named_with_the_help_command(treebank: Path) -> None:
    refused(bertology("run", "attention/entropy", "--limit", "0"), "'--limit'", "1. See `bertology run --help`.")
    refused(bertology("list", "modls"), "'modls' is not one of", "'models'", "`bertology list --help`.")
    refused(bertology("reprot"), "Did you mean 'report'? See `bertology --help`.")
    refused(bertology("view", "text", "--modle", "tiny"), "--modle", "--model", "`bertology view --help`")
    refused(bertology("run"), "No analysis was named", "bertology list analyses")
    refused(bertology("run", "attention/entropy", "--corpus", "english", "--format", "text"), "Expected conllu")
    refused(bertology("new", "attention/entropy"), "already")


def test_without_a_command_the_commands_are_listed_in_full() -> None:
    ended = bertology()
    assert ended.status == 2 and ended.out == ""
    assert ended.err == bertology("--help").out and "..." not in ended.err.split("Commands:")[1]


def test_of_many_names_only_the_nearest_are_listed() -> None:
    message = bertology("run", "attention/entropi").err
    assert "Did you mean 'attention/entropy'?" in message and "probes/word" not in message and len(message) < 300
    assert "probes/word" in bertology("run", "qqqq").err


def test_bad_input_leaves_earlier_results_intact(treebank: Path, tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    assert bertology("record", "tiny", str(treebank), "--sites", "attention", "-o", str(folder)).status == 0
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    other = tmp_path / "other.conllu"
    other.write_text(TREE, "utf-8")
    refused(bertology("record", "tiny", str(other), "--sites", "attention", "-o", str(folder)), "another model, corpus")
    other.write_text(TREE.replace("\t2\tnsubj", "\t7\tnsubj"), "utf-8")
    refused(bertology("record", "tiny", str(other), "--sites", "attention", "-o", str(folder)), "other.conllu", "line")
    assert before == {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_over_long_input_is_refused_or_counted(tmp_path: Path) -> None:
    file = tmp_path / "long.txt"
    file.write_text("word " * 700 + "\nshort\n", "utf-8")
    words = ("run", "attention/entropy", "--model", "tiny", "--corpus", str(file), "--json")
    refused(bertology(*words), "--overflow")
    counts = json.loads(bertology(*words, "--overflow", "skip").out)["inputs"]["model"]["counts"]
    assert counts["long inputs skipped"] == 1


def test_an_interrupt_says_that_finished_work_is_kept(treebank: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("bertology.claims.run.judge_claims", interrupted)
    ended = bertology("claims", "tiny", "--corpus", str(treebank))
    assert ended.status == 130
    assert ended.err.strip().endswith("finished parts are kept, and the same command resumes")


def test_a_path_without_permission_is_named(treebank: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "locked/model.safetensors")

    monkeypatch.setattr("bertology.claims.run.judge_claims", locked)
    refused(bertology("claims", "tiny", "--corpus", str(treebank)), "locked/model.safetensors", "permissions")


def test_version() -> None:
    import bertology as package

    assert bertology("--version").out.strip() == package.__version__
