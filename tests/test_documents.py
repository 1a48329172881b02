"""Every Python block and every bertology command of the README and docs runs, and links resolve."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path
from typing import Any

import pytest

from bertology.analyses import registry
from bertology.claims.claim import all_claims
from bertology.cli.main import COMMANDS
from bertology.corpus.read import readers
from command import bertology

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WITH_BLOCKS = [path for path in DOCUMENTS if BLOCK.search(path.read_text("utf-8"))]


@pytest.mark.parametrize("document", WITH_BLOCKS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_code_blocks_of_the_documentation_run(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for language, code in BLOCK.findall(document.read_text("utf-8")):
        if language == "python":
            exec(compile(code, str(document), "exec"), namespace)
        else:
            for line in code.splitlines():
                arguments = shlex.split(line, comments=True)
                if arguments and arguments[0] == "bertology":
                    result = bertology(*arguments[1:])
                    assert result.status == 0, f"{line}: {result.err}"


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_the_examples_run(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(example)])
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_the_readme_names_the_main_make_targets() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert "make report" in readme and "make test" in readme


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_between_documents_resolve(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text("utf-8")):
        assert (document.parent / target).exists(), target


@pytest.fixture(scope="module")
def generated_pages() -> dict[str, Any]:
    """The functions of docs/generate.py by name."""
    return runpy.run_path(str(ROOT / "docs" / "generate.py"))


def test_generated_pages_name_every_analysis_claim_and_corpus_format(generated_pages: dict[str, Any]) -> None:
    analyses = registry.load_all()
    overview, claims, corpora = (generated_pages[name] for name in ("analyses_overview", "claims_page", "corpora_page"))
    assert all(f"](analyses/{analysis.name}.md)" in overview(analyses) for analysis in analyses)
    assert all(claim.statement in claims() for claim in all_claims())
    assert all(f"## {name}\n" in corpora() for name in readers())
    for analysis in analyses:
        page = generated_pages["analysis_page"](analysis)
        assert analysis.question in page and all(f"`--{o.flag}`" in page for o in analysis.options.values())


def test_the_command_line_page_names_existing_options(generated_pages: dict[str, Any]) -> None:
    page = generated_pages["command_line_page"]()
    for name, part in zip(COMMANDS, page.split("\n## bertology ")[1:], strict=True):
        listed = re.findall(r"^\| `([^`]+)` \|", part, re.MULTILINE)
        help_text = bertology(name, "--help").out
        assert part.startswith(f"{name}\n") and listed
        for flag in re.findall(r"--?[a-z][a-z0-9-]*", " ".join(listed)):
            assert re.search(rf"(?<![\w-]){flag}(?![\w-])", help_text), f"bertology {name} {flag}"
