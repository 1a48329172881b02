"""The layout shows the design: imports go one way, two files know transformers, importing the package is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "bertology"
ORDER = [
    "errors", "citations", "maths", "corpus", "encoder", "recording", "results", "finetuning", "measures",
    "analyses", "claims", "views", "report", "interface", "cli",
]  # fmt: skip
MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE)


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_one_way(module: str) -> None:
    own = ORDER.index(module.split("/")[0])
    for name in imported(PACKAGE / module):
        parts = name.split(".")
        if parts[0] == "bertology" and len(parts) > 1 and parts[1] in ORDER:
            assert ORDER.index(parts[1]) <= own, f"{module} imports {name}, which is above it"


def test_only_files_of_the_encoder_import_transformers() -> None:
    """One wraps models to watch them, one names the classes that they are trained and saved as, one opens them."""
    knowing = [
        module for module in MODULES if any(n.split(".")[0] == "transformers" for n in imported(PACKAGE / module))
    ]
    assert knowing == ["encoder/huggingface.py", "encoder/task_heads.py", "encoder/transformer_files.py"]


def test_maths_knows_nothing_of_bert() -> None:
    for module in MODULES:
        if module.startswith("maths/"):
            assert not {n for n in imported(PACKAGE / module) if n.startswith("bertology") and ".maths" not in n}


@pytest.mark.parametrize("statement", ["import bertology", "from bertology import Corpus, read, Result, analysis"])
def test_importing_is_light(statement: str) -> None:
    heavy = ("torch", "transformers", "pandas", "altair")
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


def test_everything_public_is_there() -> None:
    import bertology

    for name in bertology.__all__:
        assert getattr(bertology, name) is not None
