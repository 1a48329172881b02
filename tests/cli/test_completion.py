"""Names complete in the shell, and completing them imports neither torch nor transformers."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bertology.cli.completion import complete_corpus, complete_model

HEAVY = ("torch", "transformers", "sklearn", "scipy", "pandas")
MAX_MODULES = 80
"""Modules of bertology that one completion may import: not those of the analyses."""
PROGRAM = f"""
import os, sys
words = sys.argv[1]
os.environ |= {{
    "_BERTOLOGY_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)
}}
sys.argv = ["bertology"]
from bertology.cli.main import main
try:
    main()
finally:
    count = sum(name.split(".")[0] == "bertology" for name in sys.modules)
    print([name for name in {HEAVY} if name in sys.modules], count, file=sys.stderr)
"""


def complete(words: str, cwd: Path) -> tuple[list[str], list[str], int]:
    """The completions of the last word, the heavy modules that were imported, and the number of modules."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, words], capture_output=True, text=True, cwd=cwd, check=True)
    heavy, _, count = done.stderr.strip().rpartition(" ")
    return done.stdout.split(), [name for name in HEAVY if repr(name) in heavy], int(count)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("bertology do", "doctor"),
        ("bertology run attention/ent", "attention/entropy"),
        ("bertology run attention/entropy --model mini-p", "mini-pairs"),
        ("bertology run attention/entropy --model random:mi", "random:mini"),
        ("bertology run attention/entropy --corpus eng", "english"),
        ("bertology run attention/entropy --corpus generated:agr", "generated:agreement"),
        ("bertology run attention/entropy --format conllu", "conllu"),
        ("bertology run attention/entropy --like cla", "clark2019"),
        ("bertology claims mini-n", "mini-ner"),
        ("bertology claims --paper clark", "clark2019"),
        ("bertology record mini eng", "english"),
        ("bertology list plug", "plugins"),
        ("bertology store pru", "prune"),
        ("bertology new fam", "family"),
    ],
)
def test_names_complete_without_heavy_imports(words: str, expected: str, tmp_path: Path) -> None:
    completions, heavy, n_modules = complete(words, tmp_path)
    assert expected in completions and heavy == []
    assert all(completion.startswith(words.rpartition(" ")[2]) for completion in completions)
    assert n_modules <= MAX_MODULES


def test_paths_complete_beside_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-model").mkdir()
    (tmp_path / "my-corpus.conllu").write_text("", "utf-8")
    assert complete_model("my") == ["my-model/"]
    assert complete_corpus("my") == ["my-corpus.conllu", "my-model/"]


def test_python_m_bertology_is_the_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bertology", "--version"], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    import bertology

    assert done.stdout.strip() == bertology.__version__


def test_the_module_completes_the_command_of_the_same_name() -> None:
    # typer looks for the shell among the parents of the process: the second command keeps bash one of them
    command = ["bash", "-c", f"{shlex.quote(sys.executable)} -m bertology --show-completion; exit $?"]
    script = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "complete -o default -F _bertology_completion bertology" in script
    assert "_BERTOLOGY_COMPLETE=complete_bash" in script
