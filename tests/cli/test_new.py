"""Plug-ins written by `bertology new` are installed as any package is, found by every command, and pass their tests."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from bertology.cli.new import TEMPLATES, PluginKind
from command import bertology

NAMES: dict[PluginKind, str] = {
    "analysis": "attention/far_away",
    "reader": "coloned",
    "family": "ernie",
    "claim": "author2026",
}
BROKEN = {
    "analysis": ("bertology.analyses", "attention/broken", "bertology_broken:broken"),
    "reader": ("bertology.readers", "broken", "bertology_broken:broken"),
    "family": ("bertology.families", "broken", "bertology_broken:broken"),
    "claims": ("bertology.claims", "broken2026", "bertology_broken"),
}


def create(kind: PluginKind, folder: Path) -> Path:
    completed = bertology("new", kind, NAMES[kind], "-o", str(folder))
    assert completed.status == 0, completed.err
    return folder


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[PluginKind, Path]:
    folder = tmp_path_factory.mktemp("plugins")
    return {kind: create(kind, folder / kind) for kind in NAMES}


@pytest.fixture(scope="module")
def site(sources: dict[PluginKind, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory into which pip has installed the four plug-ins."""
    pytest.importorskip("hatchling", reason="hatchling builds the packages; install the `dev` extra")
    target = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--target", str(target)]
    subprocess.run([*pip, *options, *map(str, sources.values())], check=True)
    return target


def python(site: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), *sys.path]), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, cwd=cwd)


PROGRAM = """
import json, sys
from command import bertology

results = [bertology(*arguments) for arguments in json.loads(sys.argv[1])]
print(json.dumps([(result.status, result.out, result.err) for result in results]))
"""


def commands(site: Path, *lines: Sequence[str], cwd: Path) -> list[str]:
    """The output of several commands, run one after the other in one process that finds the plug-ins."""
    completed = python(site, "-c", PROGRAM, json.dumps(lines), cwd=cwd)
    assert completed.returncode == 0, completed.stderr
    outputs: list[str] = []
    for line, (status, out, err) in zip(lines, json.loads(completed.stdout), strict=True):
        assert status == 0, f"{line}: {err}"
        outputs.append(out)
    return outputs


@pytest.mark.slow
def test_the_generated_tests_of_installed_plugins_pass(site: Path, sources: dict[PluginKind, Path]) -> None:
    folders = [str(folder / "tests") for folder in sources.values()]
    arguments = ("-m", "pytest", "-v", "-p", "no:cacheprovider", "--import-mode=importlib", *folders)
    completed = python(site, *arguments, cwd=sources["analysis"].parent)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    for kind in sources:
        assert re.search(rf"test_{kind}\.py::.* PASSED", completed.stdout), completed.stdout


OWN_CLAIM = """
[[claim]]
id = "mine"
statement = "At least one head attends to a distant token."
section = "section 1"
published_value = "one head"
analysis = "attention/far_away"
test = { kind = "any head", measure = "distance", threshold = 2, baselines = ["uniform attention"] }
"""


@pytest.mark.slow
def test_every_command_finds_installed_plugins(site: Path, tmp_path: Path) -> None:
    (tmp_path / "two.coloned").write_text("good: The cat sat.\nbad: A dog ran.\n", "utf-8")
    (tmp_path / "mine.toml").write_text(OWN_CLAIM, "utf-8")
    own_claims = ("--claims", "mine.toml", "--limit", "5", "--no-store")
    plugins, analyses, corpora, all_claims, result, published, own, _ = commands(
        site,
        ("list", "plugins", "--json"),
        ("list", "analyses"),
        ("list", "corpora"),
        ("list", "claims"),
        ("run", "attention/far_away", "-m", "tiny", "-c", "two.coloned", "--no-store", "--json"),
        ("claims", "tiny", "--paper", "author2026", "--limit", "5", "--no-store"),
        ("claims", "tiny", *own_claims),
        ("report", "tiny", *own_claims, "-o", "report.html"),
        cwd=tmp_path,
    )
    check_list_of_plugins(plugins)
    assert "attention/far_away" in analyses and "coloned" in corpora
    assert "author2026-previous-token-head" in all_claims
    check_result(result)
    assert "author2026-previous-token-head" in published and "mine" in own
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "At least one head attends to a distant token." in page
    assert "How far does each head attend on average?" in page
    assert "the plug-in attention/far_away of bertology-far-away 0.1.0" in page


def check_list_of_plugins(output: str) -> None:
    """Each plug-in has its package and version."""
    rows = json.loads(output)
    listed = {(row["kind"], row["name"], row["package"], row["version"], row["problem"]) for row in rows}
    assert listed == {
        ("analysis", "attention/far_away", "bertology-far-away", "0.1.0", ""),
        ("reader", "coloned", "bertology-coloned", "0.1.0", ""),
        ("family", "ernie", "bertology-ernie", "0.1.0", ""),
        ("claims", "author2026", "bertology-author2026", "0.1.0", ""),
    }


def check_result(output: str) -> None:
    """An installed analysis ran on a corpus of an installed format."""
    result = json.loads(output)
    assert result["baselines"].keys() == {"uniform attention", "untrained model"} and result["n"] == 2
    assert result["provenance"]["versions"]["bertology-far-away"] == "0.1.0"


@pytest.fixture(scope="module")
def broken_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with an installed package whose plug-ins of all kinds fail when they are imported."""
    target = tmp_path_factory.mktemp("broken")
    (target / "bertology_broken.py").write_text("import a_package_that_is_missing\n", "utf-8")
    metadata = target / "bertology_broken-3.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: bertology-broken\nVersion: 3.1\n", "utf-8")
    points = "".join(f"[{group}]\n{name} = {value}\n" for group, name, value in BROKEN.values())
    (metadata / "entry_points.txt").write_text(points, "utf-8")
    return target


@pytest.mark.slow
def test_a_plugin_that_fails_is_named_and_breaks_no_command(broken_site: Path, tmp_path: Path) -> None:
    (plugins,) = commands(broken_site, ("list", "plugins", "--json"), cwd=tmp_path)
    rows = json.loads(plugins)
    assert {row["kind"] for row in rows} == BROKEN.keys()
    for row in rows:
        assert (row["package"], row["version"]) == ("bertology-broken", "3.1")
        assert "ModuleNotFoundError: No module named 'a_package_that_is_missing'" in row["problem"]
    for arguments in (
        ("list", "analyses"),
        ("list", "corpora"),
        ("claims", "tiny", "--paper", "clark2019", "--limit", "3", "--no-store"),
    ):
        completed = python(broken_site, "-m", "bertology", *arguments, cwd=tmp_path)
        assert completed.returncode == 0 and completed.stdout, completed.stderr
        messages = [line for line in completed.stderr.splitlines() if "bertology-broken 3.1 is left out" in line]
        assert messages and all(line.startswith("bertology: the plug-in ") for line in messages), completed.stderr
        assert len(set(messages)) == len(messages)


@pytest.mark.slow
def test_a_plugin_that_fails_is_refused_where_it_is_asked_for(broken_site: Path, tmp_path: Path) -> None:
    completed = python(broken_site, "-m", "bertology", "run", "attention/broken", "-m", "tiny", cwd=tmp_path)
    assert completed.returncode == 2 and "a_package_that_is_missing" in completed.stderr
    assert "Traceback" not in completed.stderr


@pytest.mark.parametrize("kind", NAMES)
def test_templates_import_only_bertology_and_what_they_declare(
    sources: dict[PluginKind, Path], kind: PluginKind
) -> None:
    project = tomllib.loads((sources[kind] / "pyproject.toml").read_text("utf-8"))["project"]
    test_packages = set(project["optional-dependencies"]["test"])
    assert [re.split(r"[<>=]", requirement)[0] for requirement in project["dependencies"]] == ["bertology"]
    for file in sources[kind].rglob("*.py"):
        tree = ast.parse(file.read_text("utf-8"))
        typing_only = {
            id(node)
            for block in ast.walk(tree)
            if isinstance(block, ast.If) and getattr(block.test, "id", "") == "TYPE_CHECKING"
            for node in ast.walk(block)
        }
        modules = {
            name
            for node in ast.walk(tree)
            if id(node) not in typing_only
            for name in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
        }
        own = {module for module in modules if module.split(".")[0].startswith("bertology_")}
        others = {module for module in modules - own if module.split(".")[0] not in sys.stdlib_module_names}
        declared = test_packages if "tests" in file.parts else set[str]()
        assert others <= {"bertology"} | declared, file
        assert not ("tests" in file.parts and declared - others - {"pytest"}), "a declared package that no test imports"


def test_the_entry_point_names_what_the_package_has(sources: dict[PluginKind, Path]) -> None:
    for kind, folder in sources.items():
        project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
        ((name, target),) = project["entry-points"][TEMPLATES[kind].group].items()
        module, _, attribute = target.partition(":")
        source = folder / "src" / Path(*module.split("."))
        assert (name == NAMES[kind] and source.with_suffix(".py").is_file()) or (source / f"{name}.toml").is_file()
        assert not attribute or re.search(rf"^(def )?{attribute}\b", source.with_suffix(".py").read_text("utf-8"), re.M)


def test_existing_files_are_not_overwritten(sources: dict[PluginKind, Path]) -> None:
    completed = bertology("new", "analysis", "attention/far_away", "-o", str(sources["analysis"]))
    assert completed.status == 2 and "not empty" in completed.err


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("analysis", "commas"),
        ("analysis", "attention/entropy"),
        ("reader", "conllu"),
        ("reader", "a/b"),
        ("family", "bert"),
        ("claim", "clark2019"),
        ("claim", "Author 2026"),
    ],
)
def test_malformed_and_existing_names_are_refused(kind: str, name: str, tmp_path: Path) -> None:
    completed = bertology("new", kind, name, "-o", str(tmp_path / "new"))
    assert completed.status == 2 and not (tmp_path / "new").exists()
