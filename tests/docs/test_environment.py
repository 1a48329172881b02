"""The page on the environment names every variable that the package reads or sets, and no other as its own."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "bertology"
TABLE_ROW = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)


def names_in(tree: ast.AST) -> set[str]:
    """The variables in `os.environ[...]`, `os.environ.method(...)`, `os.getenv(...)` and `envvar=...`."""
    values: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and "environ" in ast.dump(node.value):
            values.append(node.slice)
        elif isinstance(node, ast.Call) and re.search(r"'(environ|getenv)'", ast.dump(node.func)):
            values += node.args[:1]
        elif isinstance(node, ast.keyword) and node.arg == "envvar":
            values.append(node.value)
    assert all(isinstance(value, ast.Constant) for value in values), "a variable whose name is not written out"
    return {str(value.value) for value in values if isinstance(value, ast.Constant)}


def test_the_page_names_every_variable_of_the_code() -> None:
    code = set[str]().union(*(names_in(ast.parse(path.read_text("utf-8"))) for path in PACKAGE.rglob("*.py")))
    page = (ROOT / "docs" / "environment.md").read_text("utf-8")
    own = page.split("\n## ")[1]
    assert code and set(TABLE_ROW.findall(own)) == code


def test_reads_of_all_forms_are_seen() -> None:
    code = 'import os\nos.environ["A"]\nos.environ.get("B", "")\nos.getenv("C")\nf(envvar="D")\nhtml.environment("E")\n'
    assert names_in(ast.parse(code)) == {"A", "B", "C", "D"}
