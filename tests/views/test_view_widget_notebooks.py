"""The example notebooks run, and every cell shows something."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_without_outputs(notebook: Path) -> None:
    notebook_json = json.loads(notebook.read_text("utf-8"))
    assert notebook_json["nbformat"] == 4 and not any(cell.get("outputs") for cell in notebook_json["cells"])


def is_shown(output: Any) -> bool:
    """Whether a reader sees a view, a result or a string, and not only the address of an object."""
    data: dict[str, Any] = output.get("data", {})
    text = "".join(data.get("text/plain", ""))
    return "text/html" in data or any("widget-view" in form for form in data) or text.startswith(("'", '"'))


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_of_a_notebook_runs_in_jupyter_and_shows_something(notebook: Path, tmp_path: Path) -> None:
    client = pytest.importorskip("nbclient", reason="nbclient is not installed: pip install nbclient ipykernel")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed: pip install nbclient ipykernel")
    pytest.importorskip("anywidget")
    import nbformat

    executed: Any = nbformat.read(notebook, as_version=4)
    client.NotebookClient(executed, timeout=180, resources={"metadata": {"path": str(tmp_path)}}).execute()
    cells = [cell for cell in executed.cells if cell.cell_type == "code"]
    for cell in cells:
        assert any(map(is_shown, cell.outputs)), cell.source
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]
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
