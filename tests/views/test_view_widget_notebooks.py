"""The example notebooks run, and every cell shows something."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


def cells(notebook: Path) -> list[str]:
    notebook_json: dict[str, Any] = json.loads(notebook.read_text("utf-8"))
    return ["".join(cell["source"]) for cell in notebook_json["cells"] if cell["cell_type"] == "code"]


def run_cell(code: str, names: dict[str, Any]) -> Any:
    """The value of the cell's last expression, which a notebook shows, or None."""
    *before, last = ast.parse(code).body
    if not isinstance(last, ast.Expr):
        exec(compile(code, "cell", "exec"), names)
        return None
    exec(compile(ast.Module(before, []), "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_of_a_notebook_shows_something(notebook: Path) -> None:
    pytest.importorskip("anywidget")
    names: dict[str, Any] = {}
    for code in cells(notebook):
        value = run_cell(code, names)
        forms = [getattr(value, form, None) for form in ("_repr_html_", "_repr_mimebundle_")]
        assert isinstance(value, str) or any(callable(form) and form() for form in forms), code


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_without_outputs(notebook: Path) -> None:
    notebook_json = json.loads(notebook.read_text("utf-8"))
    assert notebook_json["nbformat"] == 4 and not any(cell.get("outputs") for cell in notebook_json["cells"])


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_jupyter_runs_the_notebook(notebook: Path, tmp_path: Path) -> None:
    client = pytest.importorskip("nbclient", reason="nbclient is not installed: pip install nbclient ipykernel")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed: pip install nbclient ipykernel")
    import nbformat

    executed: Any = nbformat.read(notebook, as_version=4)
    client.NotebookClient(executed, timeout=180, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in executed.cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output.output_type == "error"]
    assert any("<iframe srcdoc=" in "".join(output.get("data", {}).get("text/html", "")) for output in outputs)


@pytest.mark.slow
def test_an_exported_notebook_shows_the_widget_offline(browser: Browser, tmp_path: Path) -> None:
    """nbconvert loads the code of widgets from the network, which is not there: a frame takes the widget's place."""
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    nbconvert = pytest.importorskip("nbconvert")
    code = "import bertology\nbertology.view('tiny', 'A cat sat.').widget()"
    notebook: Any = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    client.NotebookClient(notebook, timeout=180, resources={"metadata": {"path": str(tmp_path)}}).execute()
    html, _ = nbconvert.HTMLExporter().from_notebook_node(notebook)
    file = tmp_path / "exported.html"
    file.write_text(html, "utf-8")
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto(file.as_uri(), wait_until="domcontentloaded")
    page.frame_locator("iframe").locator(".views[data-ready=head]").wait_for(timeout=20_000)
    assert page.locator("iframe").is_visible()
    context.close()
