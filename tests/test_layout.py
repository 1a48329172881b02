"""The structure of the package: imports go one way, names are unique and in the glossary's words, imports are light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "bertology"
ORDER = [
    "errors", "machine_errors", "store_paths", "work_estimate", "number_ranges", "progress", "public_functions",
    "plugins", "lazy", "library_settings", "arrays", "html", "citations", "atomic_files", "checked_files",
    "download_cache", "folder_lock", "input_files", "engines",
    "estimates", "numerics", "corpus", "encoder",
    "statistics", "recording", "results", "training", "analyses", "claims", "views", "atlas", "server", "cli",
]  # fmt: skip
MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE)

SHARED_FUNCTION_NAMES = {
    "matches": "every corpus reader has one",
    "show": "BertViz has a function of this name, and its calls work here",
}
"""Public functions that several modules define on purpose, as parts of one protocol."""


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse((PACKAGE / module).read_text("utf-8"))


def imported_names(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_one_way(module: str) -> None:
    position = ORDER.index(module.split("/")[0])
    for name in imported_names(PACKAGE / module):
        parts = name.split(".")
        if parts[0] == "bertology" and len(parts) > 1 and parts[1] in ORDER:
            assert ORDER.index(parts[1]) <= position, f"{module} imports {name}, which is above it"


def test_every_top_level_module_has_a_position() -> None:
    names = {path.stem for path in PACKAGE.glob("*.py")} | {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert names - {"__init__", "__main__"} == set(ORDER)


def test_only_encoder_imports_transformers() -> None:
    importers = [m for m in MODULES if any(n.split(".")[0] == "transformers" for n in imported_names(PACKAGE / m))]
    assert importers and all(module.startswith("encoder/") for module in importers)


def test_numerics_knows_arrays_and_estimates_only() -> None:
    for module in MODULES:
        if module.startswith("numerics/"):
            names = {n for n in imported_names(PACKAGE / module) if n.startswith("bertology.")}
            assert all(n.split(".")[1] in {"numerics", "estimates", "arrays", "lazy"} for n in names), module


def test_no_public_class_is_defined_in_two_modules() -> None:
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for module, tree in zip(MODULES, map(tree_of, MODULES), strict=True):
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(module)
    assert {name: modules for name, modules in homes.items() if len(modules) > 1} == {}


def test_no_public_function_is_defined_in_two_modules() -> None:
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for module, tree in zip(MODULES, map(tree_of, MODULES), strict=True):
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and module not in homes[node.name]:
                homes[node.name].append(module)
    shared = {name: modules for name, modules in homes.items() if len(modules) > 1}
    assert shared.keys() == SHARED_FUNCTION_NAMES.keys(), shared


SUITES = {"contract", "golden"}
"""Tests of all analyses together."""

OLD_WORDS = (
    "piece", "pieces", "sheet", "sheets", "lesson", "lessons", "learner", "learners", "told", "said", "asked", "found",
    "place", "places", "drawn", "resting", "stretches", "tap", "tapped", "journey", "station", "shelf", "workplace",
    "wanted", "luck", "ordinary", "settled", "fresh", "keeper", "recipe", "slopes", "teacher", "pupil", "beside",
)  # fmt: skip
"""Words that no variable, function, class or field may contain; docs/glossary.md has the words in use."""


@pytest.mark.parametrize("module", MODULES)
def test_identifiers_use_the_words_of_the_glossary(module: str) -> None:
    identifiers: set[str] = set()
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            identifiers.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            identifiers.add(node.name)
        elif isinstance(node, ast.arg):
            identifiers.add(node.arg)
    words = {name: set(re.findall(r"[a-z]+", re.sub(r"([A-Z])", r"_\1", name).lower())) for name in identifiers}
    assert {name for name, parts in words.items() if parts & set(OLD_WORDS)} == set()


def test_the_test_tree_mirrors_the_source_tree() -> None:
    """A test file lies where its module or package lies: tests/a/test_b.py for a/b.py, or for the package a/b."""
    strays: list[str] = []
    for path in (ROOT / "tests").rglob("test_*.py"):
        relative = path.relative_to(ROOT / "tests")
        if len(relative.parts) == 1 or relative.parts[0] in {"pretraining", "docs", "faults", "fuzz"}:
            continue
        if not (PACKAGE / relative.parts[0]).exists():
            strays.append(str(relative))
            continue
        target = PACKAGE / relative.parent
        while not target.exists():
            target = target.parent
        subject = relative.stem.removeprefix("test_")
        if subject in SUITES:
            continue
        if not target.is_dir() or not _has_module(target, subject):
            strays.append(str(relative))
    assert strays == []


def _has_module(directory: Path, subject: str) -> bool:
    """Whether a module or package in the directory, or the directory itself, has the name, or a name it begins with."""
    names = {path.stem for path in directory.iterdir()} | {directory.name}
    names |= {path.stem for path in directory.rglob("*.py")}
    return any(subject == name or subject.startswith(f"{name}_") for name in names)


@pytest.mark.parametrize("statement", ["import bertology", "from bertology import Corpus, read, Result, analysis"])
def test_importing_is_light(statement: str) -> None:
    heavy = ("torch", "transformers", "pandas", "vl_convert")
    program = f"{statement}; import sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_help_and_list_need_no_torch() -> None:
    program = (
        "import sys\nfrom bertology.cli.main import app\n"
        "for words in (['--help'], ['list', 'analyses'], ['list', 'corpora'], ['list', 'sites']):\n"
        "    try: app(words, standalone_mode=False)\n    except SystemExit: pass\n"
        "print([m for m in ('torch', 'transformers') if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_torch_is_imported_by_one_lazy_module_or_at_the_top() -> None:
    """No function imports torch: modules take it from `bertology.lazy`, or import it at the top."""
    for module, tree in zip(MODULES, map(tree_of, MODULES), strict=True):
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef):
                imports = [n for n in ast.walk(function) if isinstance(n, ast.Import)]
                assert not any(alias.name == "torch" for n in imports for alias in n.names), module


def test_every_public_name_exists() -> None:
    import bertology

    for name in bertology.__all__:
        assert getattr(bertology, name) is not None
