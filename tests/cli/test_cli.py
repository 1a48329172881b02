"""The command line: results on stdout, messages on stderr, user errors in one paragraph with exit status 2."""

from __future__ import annotations

import json
import re
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


def assert_refused(completed: CommandResult, *mentions: str) -> None:
    """Exit status 2, nothing on stdout, and one paragraph on stderr that contains `mentions`."""
    assert completed.status == 2, completed
    assert completed.out == ""
    paragraph = completed.err.strip().splitlines()[-1]
    assert paragraph.startswith("bertology: ")
    assert "Traceback" not in completed.err
    for mention in mentions:
        assert mention in paragraph, paragraph


def test_run_prints_one_json_object(treebank: Path) -> None:
    completed = bertology("run", "attention/entropy", "--model", "tiny", "--corpus", str(treebank), "--json")
    assert completed.status == 0, completed.err
    result = Result.from_json(completed.out)
    assert result.analysis == "attention/entropy" and result.n == 2
    assert set(result.to_json()["baselines"]) == {"uniform attention", "untrained model"}


def test_run_prints_tables_without_json(treebank: Path) -> None:
    completed = bertology("run", "attention/targets", "--model", "tiny", "--corpus", str(treebank))
    assert completed.status == 0, completed.err
    assert "attention to [SEP]" in completed.out and "uniform attention" in completed.out and "n = 2" in completed.out


def test_a_second_run_uses_the_stored_recording_and_says_so(treebank: Path) -> None:
    arguments = ("run", "attention/entropy", "--model", "tiny", "--corpus", str(treebank), "--json")
    first, second = bertology(*arguments), bertology(*arguments)
    assert first.out == second.out
    assert "stored recording" not in first.err
    assert "stored recording" in second.err


def test_analysis_options_are_parsed_and_recorded(treebank: Path) -> None:
    completed = bertology("run", "attention/entropy", "-m", "tiny", "-c", str(treebank), "--seed", "5", "--json")
    assert json.loads(completed.out)["options"] == {"seed": 5}
    completed = bertology("run", "attention/entropy", "-m", "tiny", "-c", str(treebank), "--seed=6", "--json")
    assert json.loads(completed.out)["options"] == {"seed": 6}


def test_a_recording_replaces_model_and_corpus(treebank: Path, tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    sites = "attention,attention.entropy"
    assert bertology("record", "tiny", str(treebank), "--sites", sites, "-o", str(folder)).status == 0
    direct = bertology("run", "attention/entropy", "-m", "tiny", "-c", str(treebank), "--no-random-baseline", "--json")
    replayed = bertology("run", "attention/entropy", "--recording", str(folder), "--json")
    assert json.loads(replayed.out)["data"] == json.loads(direct.out)["data"]
    derived = bertology("run", "attention/targets", "--recording", str(folder), "--json")
    assert derived.status == 0, derived.err


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf", "html"])
def test_a_figure_is_saved_in_addition_to_the_json(treebank: Path, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"entropy.{suffix}"
    arguments = ("run", "attention/entropy", "-m", "tiny", "-c", str(treebank), "--json", "--figure", str(path))
    completed = bertology(*arguments, "--theme", "dark")
    assert completed.status == 0, completed.err
    assert json.loads(completed.out)["analysis"] == "attention/entropy"
    assert str(path) in completed.err and path.stat().st_size > 1000


def test_a_figure_that_cannot_be_saved_is_refused_before_the_computation(
    treebank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("run", "attention/entropy", "-m", "tiny", "-c", str(treebank), "--figure")
    assert_refused(bertology(*arguments, "figure.gif"), ".gif", ".svg, .png, .pdf, .html")
    assert_refused(bertology(*arguments, str(tmp_path / "no" / "figure.svg")), "no folder")
    assert_refused(bertology(*arguments, "figure.svg", "--theme", "blue"), "light", "dark")
    assert_refused(bertology(*arguments, "figure.svg", "--caption", "long"), "none", "short", "full")
    assert_refused(bertology(*arguments, "figure.svg", "--width", "85"), "not a length", "85mm")
    assert_refused(bertology(*arguments, "figure.html", "--width", "85mm"), "for a page", ".svg, .pdf or .png")
    for option, value in (("--panels", "entropy"), ("--width", "85mm"), ("--caption", "none"), ("--theme", "dark")):
        assert_refused(bertology(*arguments[:-1], option, value), f"{option} was given without --figure")
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert_refused(bertology(*arguments, "figure.png"), "pip install 'bertology[figures]'")


def test_panels_width_and_caption_of_a_figure_are_chosen(treebank: Path, tmp_path: Path) -> None:
    path = tmp_path / "targets.svg"
    arguments = ("run", "attention/targets", "-m", "tiny", "-c", str(treebank), "--figure", str(path))
    completed = bertology(*arguments, "--panels", "to previous,to [SEP]", "--width", "85mm", "--caption", "none")
    assert completed.status == 0, completed.err
    svg = path.read_text("utf-8")
    names = re.findall(r'class="name">([^<]+)<', svg)
    assert names == ["attention to previous token", "attention to [SEP]"] and 'width="85.00mm"' in svg
    assert "% of a token&#39;s attention" in svg and "--panels" in svg.partition("</metadata>")[0]
    refused = bertology(*arguments, "--panels", "to previous,entropi")
    assert_refused(refused, "no panel called 'entropi'", "attention to [CLS]")


def test_one_head_or_all_heads_are_printed(treebank: Path) -> None:
    arguments = ("run", "attention/entropy", "-m", "tiny", "-c", str(treebank))
    card = bertology(*arguments, "--head", "2-1")
    assert card.status == 0 and "Head 2-1, its rank among all heads" in card.out
    assert "Mean over heads" not in card.out and "untrained model" in card.out
    lines = [line.split() for line in bertology(*arguments, "--all-rows").out.splitlines()]
    heads = {line[0] for line in lines if line and re.fullmatch(r"\d+-\d+", line[0])}
    grid = json.loads(bertology(*arguments, "--json").out)["data"]["measures"]["entropy"]["value"]
    assert len(heads) == sum(map(len, grid)) and "--all-rows" in bertology(*arguments).out
    for head in ("9-1", "1", "one"):
        assert_refused(bertology(*arguments, "--head", head), head)
    whole, chosen = (json.loads(bertology(*arguments, "--json", *head).out) for head in ((), ("--head", "2-1")))
    assert whole["data"] == chosen["data"]


@pytest.mark.parametrize("kind", ["analyses", "models", "corpora", "sites", "claims", "presets"])
def test_lists_are_readable_and_json(kind: str) -> None:
    assert bertology("list", kind).out
    assert all(row["name"] and row["description"] for row in json.loads(bertology("list", kind, "--json").out))


def test_help_of_an_analysis_names_its_options() -> None:
    completed = bertology("run", "attention/entropy", "--help")
    assert completed.status == 0
    assert "--seed" in completed.out and "Random seed" in completed.out and "--model" in completed.out


def test_the_report_is_one_page(treebank: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    completed = bertology("report", "tiny", "--corpus", str(treebank), "-o", str(page), "--no-store", "--no-fill")
    assert completed.status == 0, completed.err
    html = page.read_text("utf-8")
    assert completed.out.strip() == str(page)
    assert "random" in html and "<svg" in html and "src=" not in html


def test_several_models_are_compared_in_one_table(treebank: Path) -> None:
    arguments = ("--model", "tiny", "--against", "tiny", "--against", "random:tiny@3", "--measures", "rsa", "--json")
    completed = bertology(
        "run", "geometry/representation_similarity", *arguments, "--corpus", str(treebank), "--no-store"
    )
    assert completed.status == 0, completed.err
    record = json.loads(completed.out)
    assert record["shape"] == "Matrix"
    same, random = next(iter(record["data"]["measures"].values()))["value"]
    assert min(same) > 0.999 and max(random) < 0.9


def test_user_errors_are_explained_in_one_paragraph(treebank: Path, tmp_path: Path) -> None:
    corpus = ("--corpus", str(treebank))
    assert_refused(bertology("run", "attention/entropi", *corpus), "attention/entropy")
    assert_refused(bertology("run", "attention/entropy", "--model", "tyny", *corpus), "tiny")
    assert_refused(
        bertology("run", "attention/entropy", "--corpus", str(tmp_path / "nowhere.conllu")), "nowhere.conllu"
    )
    assert_refused(bertology("run", "attention/entropy", *corpus, "--sede", "1"), "seed")
    assert_refused(bertology("run", "attention/entropy", *corpus, "--seed", "one"), "--seed", "one")
    assert_refused(bertology("run", "attention/entropy", *corpus, "--seed"), "--seed")
    assert_refused(bertology("run", "attention/entropy", *corpus, "--format", "conlu"), "conllu")
    assert_refused(bertology("run", "attention/entropy", "--recording", str(tmp_path)), "manifest")
    assert_refused(bertology("run", "attention/entropy", *corpus, "--device", "cuda"), "cpu")
    assert_refused(bertology("run", "attention/entropy", *corpus, "--device", "gpu7"), "cpu")
    assert_refused(
        bertology("record", "tiny", str(treebank), "--sites", "atention", "-o", str(tmp_path / "r")), "attention"
    )
    assert_refused(bertology("run", "attention/entropy", "--model", "random-vectors:8", *corpus), "attention")
    assert_refused(bertology("report", "tiny", *corpus, "-o", str(tmp_path / "no" / "page.html")), "page.html")
    assert_refused(bertology("frobnicate"), "frobnicate")
    assert_refused(bertology("new", "analysis", "Bad Name"), "group/name")


def test_a_wrong_option_is_named_with_the_help_command(treebank: Path) -> None:
    assert_refused(bertology("run", "attention/entropy", "--limit", "x"), "'--limit'", "See `bertology run --help`.")
    assert_refused(bertology("run", "attention/entropy", "--limit", "0"), "--limit was given 0", "number from 1 to")
    assert_refused(bertology("list", "modls"), "'modls' is not one of", "'models'", "`bertology list --help`.")
    assert_refused(bertology("reprot"), "Did you mean 'report'? See `bertology --help`.")
    assert_refused(bertology("view", "text", "--modle", "tiny"), "--modle", "--model", "`bertology view --help`")
    assert_refused(bertology("run"), "No analysis was named", "bertology list analyses")
    assert_refused(bertology("run", "attention/entropy", "--corpus", "english", "--format", "text"), "Expected conllu")
    assert_refused(bertology("new", "analysis", "attention/entropy"), "already")


def test_without_a_command_the_commands_are_listed_in_full() -> None:
    completed = bertology()
    assert completed.status == 2 and completed.out == ""
    assert completed.err == bertology("--help").out and "..." not in completed.err.split("Commands:")[1]


def test_only_the_most_similar_of_many_names_are_listed() -> None:
    message = bertology("run", "attention/entropi").err
    assert "Did you mean 'attention/entropy'?" in message and "probes/word" not in message and len(message) < 300
    assert "probes/word" in bertology("run", "qqqq").err


def test_bad_input_leaves_earlier_results_intact(treebank: Path, tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    assert bertology("record", "tiny", str(treebank), "--sites", "attention", "-o", str(folder)).status == 0
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    other = tmp_path / "other.conllu"
    other.write_text(TREE, "utf-8")
    assert_refused(
        bertology("record", "tiny", str(other), "--sites", "attention", "-o", str(folder)), "another model, corpus"
    )
    other.write_text(TREE.replace("\t2\tnsubj", "\t7\tnsubj"), "utf-8")
    assert_refused(
        bertology("record", "tiny", str(other), "--sites", "attention", "-o", str(folder)), "other.conllu", "line"
    )
    assert before == {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_long_inputs_are_refused_or_skipped_and_counted(tmp_path: Path) -> None:
    file = tmp_path / "long.txt"
    file.write_text("word " * 700 + "\nshort\n", "utf-8")
    arguments = ("run", "attention/entropy", "--model", "tiny", "--corpus", str(file), "--json")
    assert_refused(bertology(*arguments), "--overflow")
    counts = json.loads(bertology(*arguments, "--overflow", "skip").out)["inputs"]["model"]["counts"]
    assert counts["long inputs skipped"] == 1
    arguments = ("run", "interventions/layer_ablation", "--model", "tiny", "--corpus", str(file), "--json")
    result = json.loads(bertology(*arguments).out)
    assert result["options"]["overflow"] == "auto" and result["data"]["sample"]["long examples skipped"] == 1
    assert_refused(bertology(*arguments, "--overflow", "error"), "702 tokens", "--overflow skip or truncate")
    result = json.loads(bertology(*arguments, "--overflow", "truncate").out)
    assert result["data"]["sample"]["examples"] == 2 and result["data"]["sample"]["long examples truncated"] == 1
    assert_refused(bertology(*arguments, "--max-length", "20"), "maximum length of 20", "Leave out --max-length")


def test_an_interruption_says_that_finished_results_are_kept(treebank: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("bertology.claims.run.judge_claims", interrupted)
    completed = bertology("claims", "tiny", "--corpus", str(treebank))
    assert completed.status == 130
    assert completed.err.strip().endswith("finished parts are kept, and the same command resumes")


def test_a_path_without_permission_is_named(treebank: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "locked/model.safetensors")

    monkeypatch.setattr("bertology.claims.run.judge_claims", locked)
    assert_refused(bertology("claims", "tiny", "--corpus", str(treebank)), "locked/model.safetensors", "permissions")


def test_version() -> None:
    import bertology as package

    assert bertology("--version").out.strip() == package.__version__
