"""`bertology view` writes a page and prints its path; mistakes are refused in one paragraph."""

from __future__ import annotations

from pathlib import Path

from command import bertology


def test_a_page_is_written(tmp_path: Path) -> None:
    file = tmp_path / "view.html"
    arguments = ("The cat sat.", "It slept.", "--model", "tiny", "--quantity", "norm", "--view", "matrix")
    completed = bertology("view", *arguments, "-o", str(file))
    assert (completed.status, completed.out.strip()) == (0, str(file))
    text = file.read_text("utf-8")
    assert text.startswith("<!doctype html>") and '"state":"view=matrix&layer=' in text and '"name":"norm"' in text


def test_an_example_of_a_corpus_is_shown_with_its_tree_and_results(tmp_path: Path) -> None:
    completed = bertology("run", "attention/word_patterns", "--model", "tiny", "--limit", "4", "--json")
    (tmp_path / "patterns.json").write_text(completed.out, "utf-8")
    file = tmp_path / "view.html"
    arguments = (
        "--corpus",
        "english",
        "--example",
        "3",
        "--model",
        "tiny",
        "--results",
        str(tmp_path),
        "-o",
        str(file),
    )
    completed = bertology("view", *arguments)
    assert (completed.status, completed.out.strip()) == (0, str(file))
    assert '"name":"gold"' in file.read_text("utf-8")


def test_mistakes_are_refused(tmp_path: Path) -> None:
    completed = bertology("view", "The cat sat.", "--model", "tiny", "-o", str(tmp_path / "no" / "where.html"))
    assert completed.status == 2 and "cannot be written" in completed.err
    completed = bertology("view", "The cat sat.", "--model", "tiny", "--quantity", "norms")
    assert completed.status == 2 and "Did you mean 'norm'" in completed.err
    completed = bertology("view", "The cat sat.", "--model", "static:tiny", "-o", str(tmp_path / "static.html"))
    assert completed.status == 2 and "static vectors" in completed.err
    completed = bertology("view", "  ", "--model", "tiny")
    assert completed.status == 2 and "The text is empty" in completed.err
    completed = bertology("view", "word " * 600, "--model", "tiny")
    assert (
        completed.status == 2
        and "at most 512" in completed.err
        and "Shorten" in completed.err
        and "--overflow" not in completed.err
    )
    completed = bertology("view", "The cat sat.", "--model", "tiny", "--view", "difference")
    assert completed.status == 2 and "something to compare with" in completed.err
    completed = bertology("view", "The cat sat.", "--model", "tiny", "--view", "neuron", "--no-neurons")
    assert completed.status == 2 and "neurons" in completed.err
    completed = bertology("view", "--model", "tiny")
    assert completed.status == 2 and "No text was given" in completed.err
    completed = bertology("view", "The cat sat.", "--corpus", "english", "--model", "tiny")
    assert completed.status == 2 and "Both a text and a corpus" in completed.err
    completed = bertology("view", "--corpus", "english", "--example", "9999", "--model", "tiny")
    assert completed.status == 2 and "--example from 1 to" in completed.err
    completed = bertology("view", "The cat sat.", "--model", "tiny", "--results", str(tmp_path / "none.json"))
    assert completed.status == 2 and "none.json cannot be read" in completed.err


def test_a_page_that_opens_with_neurons_has_them_for_long_texts(tmp_path: Path) -> None:
    file = tmp_path / "view.html"
    completed = bertology("view", "the cat " * 70, "--model", "tiny", "--view", "neuron", "-o", str(file))
    assert completed.status == 0 and '"query":null' not in file.read_text("utf-8")


def test_an_input_of_a_recording_is_shown_without_the_model(tmp_path: Path) -> None:
    folders = [str(tmp_path / name) for name in ("one", "two")]
    for model, folder in zip(("tiny", "random:tiny"), folders, strict=True):
        arguments = ("--sites", "attention,query,key", "--limit", "3", "-o", folder)
        assert bertology("record", model, "english", *arguments).status == 0
    file = tmp_path / "view.html"
    arguments = ("--recording", folders[0], "--against-recording", folders[1], "--example", "2", "-o", str(file))
    completed = bertology("view", *arguments, "--view", "difference")
    assert (completed.status, completed.out.strip()) == (0, str(file)), completed.err
    text = file.read_text("utf-8")
    assert '"name":"gold"' in text and '"name":"random:tiny"' in text and '"query":null' not in text


def test_what_a_recording_cannot_show_is_refused(tmp_path: Path) -> None:
    folder = str(tmp_path / "recorded")
    assert bertology("record", "tiny", "english", "--sites", "hidden", "--limit", "3", "-o", folder).status == 0
    for arguments, message in (
        (("A text.",), "Both --recording and a text"),
        (("--against", "tiny"), "Both --recording and --against"),
        (("--model", "tiny"), "Both --recording and a model"),
        (("--example", "9"), "is not among its 3"),
        ((), "--sites attention -o DIR"),
    ):
        completed = bertology("view", "--recording", folder, *arguments, "-o", str(tmp_path / "view.html"))
        assert completed.status == 2 and message in " ".join(completed.err.split()), completed.err
