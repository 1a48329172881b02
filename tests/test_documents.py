"""Every Python block and every bertology command of the README and docs runs, and links resolve."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import bertology as package
from bertology.analyses import registry
from bertology.claims.catalogue import all_claims
from bertology.cli.main import COMMANDS
from bertology.corpus.read import readers
from bertology.views.report.schemas import json_schemas
from command import bertology
from serving import real_server
from warm_processes import warm_workers

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "README.zh.md", *sorted((ROOT / "docs").rglob("*.md"))]
GENERATED = {f"{name}.md" for name in ("analyses", "claims", "command-line", "corpora", "gallery", "schemas")}
"""Pages that docs/generate.py makes."""
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WITH_BLOCKS = [
    path
    for path in DOCUMENTS
    if path.name != "README.zh.md" and path.parent.name != "primer" and BLOCK.search(path.read_text("utf-8"))
]
"""Pages whose code is run here. Chapters have tests of their own, and the Chinese README has the same code."""


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
                if arguments[:2] == ["bertology", "serve"]:
                    check_server_starts(tmp_path / "server", arguments[2:])
                elif arguments and arguments[0] == "bertology":
                    command, _, output = " ".join(map(shlex.quote, arguments[1:])).partition(" '>' ")
                    with warm_workers():
                        result = bertology(*shlex.split(command))
                    assert result.status == 0, f"{line}: {result.err}"
                    if output:
                        Path(output).write_text(result.out, "utf-8")


def check_server_starts(home: Path, arguments: list[str]) -> None:
    """The command serves its page and loads its model and corpus; it would not end by itself."""
    with real_server(home, *(word for word in arguments if word != "--open"), model=None) as server:
        server.wait_until_ready()
        with server.client() as client:
            assert "<title>" in client.get("/").text


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_the_examples_run(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(example)])
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_the_readme_names_the_main_make_targets_and_how_the_command_gets_on_the_path() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert "make report" in readme and "make test" in readme
    commands = [line for language, code in BLOCK.findall(readme) if language == "sh" for line in code.splitlines()]
    first = next(index for index, line in enumerate(commands) if line.startswith("bertology"))
    assert "source .venv/bin/activate" in commands[:first]


def test_the_chinese_readme_has_the_same_commands_and_code() -> None:
    def without_comments(document: str) -> list[str]:
        blocks = [code for _, code in BLOCK.findall((ROOT / document).read_text("utf-8"))]
        lines = [line.split("  #")[0].split("   #")[0].rstrip() for code in blocks for line in code.splitlines()]
        return [re.sub(r'"(uniform attention:|均匀注意力：)"', '"uniform"', line) for line in lines]

    assert without_comments("README.md") == without_comments("README.zh.md")


def test_every_analysis_has_a_text_with_the_same_sections() -> None:
    for analysis in registry.load_all():
        text = (ROOT / "docs" / "analyses" / f"{analysis.name}.md").read_text("utf-8")
        sections = re.findall(r"^## (.+)$", text, re.MULTILINE)
        assert sections == ["Definition", "How to read it", "What can go wrong", "The paper and its code"], (
            analysis.name
        )
        assert "$$" in text, analysis.name


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_between_documents_resolve(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text("utf-8")):
        path = (document.parent / target).resolve()
        assert path.exists() or path.relative_to(ROOT / "docs").as_posix() in GENERATED, target


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


def test_the_page_of_schemas_has_every_field_of_every_object(generated_pages: dict[str, Any]) -> None:
    page = generated_pages["schemas_page"]()
    for name, schema in json_schemas().items():
        assert f"## bertology {name} --json\n" in page
        objects = {**schema["$defs"], **({name: schema} if "properties" in schema else {})}
        for definition in objects.values():
            assert all(f"\n| `{field}` |" in page for field in definition["properties"])
        assert all(f"\n## {definition}\n" in page for definition in schema["$defs"])
    assert "object [`result`](#result) or object with `results`" in page


def test_the_gallery_has_at_least_40_current_figures(generated_pages: dict[str, Any]) -> None:
    page = generated_pages["gallery_page"](registry.load_all())
    assert page.count("<figure>") >= 40
    assert page.count("<svg") >= page.count("<figure>")


def test_stored_results_belong_to_analyses_and_have_no_paths() -> None:
    stored = sorted((ROOT / "docs" / "results").rglob("*.json"))
    assert {path.relative_to(ROOT / "docs" / "results").with_suffix("").as_posix() for path in stored} <= set(
        registry.names()
    )
    assert not [path for path in stored if re.search(r'"/(home|root|tmp|work)/', path.read_text("utf-8"))]


def test_every_public_name_stands_on_one_page_of_the_python_reference(generated_pages: dict[str, Any]) -> None:
    pages = generated_pages["api_pages"]()
    overview = pages.pop("api/index.md")
    for name in set(package.__all__) - {"__version__"}:
        assert f"[`bertology.{name}`]" in overview, name
        assert sum(f"heading: bertology.{name}\n" in page for page in pages.values()) == 1, name
    assert all(page.count(":::") for page in pages.values())


def test_all_formulas_become_mathml() -> None:
    pytest.importorskip("latex2mathml")
    mathml = runpy.run_path(str(ROOT / "docs" / "formulas.py"))["mathml"]
    formula = re.compile(r"\$\$(.*?)\$\$|\\\((.*?)\\\)", re.DOTALL)
    formulas = [found for page in DOCUMENTS for found in formula.findall(page.read_text("utf-8"))]
    assert len(formulas) > 500
    assert all(mathml(block or inline).startswith("<math") for block, inline in formulas)
    assert "<mfrac>" in mathml(r"\frac{1}{n}")
    with pytest.raises(ValueError, match="unknown command"):
        mathml(r"\nosuchcommand{x}")


@pytest.mark.slow
def test_the_site_builds_strictly_and_fetches_nothing(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    # With --quiet, warnings would not fail a strict build.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "PRIMER_SENTENCES": "0"}  # chapters run in tests of their own
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert built.returncode == 0, built.stderr
    fetched = re.compile(r'<(?:script|img|iframe|link)\b[^>]*(?:src|href)="(?:https?:)?//[^"]+"')
    pages = {path: path.read_text("utf-8") for path in tmp_path.rglob("*.html")}
    assert {path: fetched.findall(page) for path, page in pages.items() if fetched.search(page)} == {}
    assert "__index" in (tmp_path / "search" / "search_index.js").read_text("utf-8")[:20]
    entropy = pages[tmp_path / "analyses" / "attention" / "entropy.html"]
    assert "<math" in entropy and "<svg" in entropy and "\\(" not in entropy
