"""The text about the atlas in the docs: its numbers come from the JSON files, and its conclusions are checked."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

FOLDER = Path(__file__).parents[2] / "docs" / "atlas"
RESULT = re.compile(r"\d+(?:\.\d+)? (?:%|points|nats|bits)|\b\d\.\d\d\b")
"""What looks like the number of a result."""


def load_script(name: str) -> ModuleType:
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    return importlib.import_module(name)


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return load_script("write_index")


def test_the_page_has_the_numbers_of_the_json_files(script: ModuleType) -> None:
    text = (FOLDER / "index.txt").read_text("utf-8")
    assert (FOLDER / "index.md").read_text("utf-8") == script.render_index(text), "run docs/atlas/write_index.py"


def test_no_number_of_a_result_is_typed(script: ModuleType) -> None:
    text = (FOLDER / "index.txt").read_text("utf-8")
    typed = script.VALUE.sub("", re.sub(r"^\|.*|`[^`]*`|```.*?```", "", text, flags=re.MULTILINE | re.DOTALL))
    assert RESULT.findall(typed) == []
    assert len(script.VALUE.findall(text)) > 20


def planted(script: ModuleType) -> Any:
    def cell(model: str, value: float, verdict: str) -> dict[str, Any]:
        fields = {"value": value, "low": value - 0.02, "high": value + 0.02, "untrained": 0.1}
        return {"finding": "a", "model": model, "verdict": verdict, **fields}

    layers = {"x": 8, "y": 3, "mini-short-seed-0": 8, "x@10%": 8, "random:x": 8}
    return script.AtlasNumbers(
        {
            "models": [
                {"name": name, "is_finished": "@" not in name and ":" not in name, "is_trained": ":" not in name}
                | {"n_layers": n_layers}
                for name, n_layers in layers.items()
            ],
            "findings": [{"id": "a", "unit": "percent", "agreement": "differs", "headline": "A head does it."}],
            "verdicts": [
                *(cell("x", 0.5, "holds"), cell("y", 0.75, "holds"), cell("mini-short-seed-0", 0.3, "fails")),
                *(cell("x@10%", 0.2, "fails"), cell("random:x", 0.1, "fails")),
            ],
            "differences": [{"is_significant": True, "is_paired": True}, {"is_significant": False, "is_paired": True}],
            "training_runs": [{"name": "x", "appearances": [{"finding": "a", "after": 10.0, "by": 100.0}]}],
        }
    )


def test_numbers_as_text(script: ModuleType) -> None:
    numbers = planted(script)
    assert numbers.number("a", "x") == "50 % [48, 52]"
    assert numbers.value("a", "x", "untrained") == "10 %"
    assert numbers.spread("a") == "50 % to 75 %" and numbers.names("a") == "x and y"
    assert numbers.differences(is_significant=True) == 1 and numbers.differences(is_paired=True) == 2
    assert numbers.appearing("x", 10.0) == ["a"] and numbers.appearing("x") == []
    assert numbers.short_runs == ["mini-short-seed-0"] and numbers.long_trained == ["x", "y"] and numbers.deep == ["x"]
    assert numbers.only_long_training == ["a"] and numbers.holding_names("mini-short-seed-0") == []
    assert numbers.headlines("differs") == "- A head does it."


def test_a_wrong_conclusion_is_refused(script: ModuleType) -> None:
    numbers = planted(script)
    assert numbers.agree("differs", "a") == "" and numbers.check(True) == ""
    with pytest.raises(AssertionError, match="the text says universal"):
        numbers.agree("universal", "a")
    with pytest.raises(AssertionError, match="not what the numbers say"):
        numbers.check(numbers.count("universal") == 1)


def test_layers_of_a_common_ancestor_are_found(script: ModuleType, tmp_path: Path) -> None:
    """The second model has the first and third layer of the first one, trained on; the third model has none."""
    generator = torch.Generator().manual_seed(0)
    layers = [torch.randn(16, 16, generator=generator) for _ in range(5)]
    noise = 0.3 * torch.randn(16, 16, generator=generator)
    models = {"deep": layers[:3], "cut": [layers[0] + noise, layers[2] - noise], "other": layers[3:]}
    for name, matrices in models.items():
        (tmp_path / name).mkdir()
        query = "attn.q" if name == "cut" else "self.query"  # as in MPNet, and as in BERT
        weights = {f"encoder.layer.{i}.attention.{query}.weight": matrix for i, matrix in enumerate(matrices)}
        save_file(weights, tmp_path / name / "model.safetensors")
    found = load_script("shared_layers").find_shared_layers({name: tmp_path / name for name in models})
    pairs = [(each["first_layer"], each["second"], each["second_layer"]) for each in found]
    assert pairs == [(1, "cut", 1), (3, "cut", 2)]
    numbers = script.AtlasNumbers({"shared_layers": found})
    assert numbers.layers("cut", "deep") == "1 and 3" and numbers.shared("deep", "other") == []
    assert numbers.cosines("cut", "deep").startswith("0.9")


def test_the_records_of_an_atlas_are_all_that_its_numbers_need() -> None:
    """The Chinese atlas, from the records in its JSON file: the same verdicts and tested differences."""
    content = json.loads((FOLDER / "chinese.json").read_text("utf-8"))
    again = load_script("write_pages").read_atlas("chinese").to_json()
    assert len(content["verdicts"]) > 200
    for name in ("models", "verdicts", "differences", "peculiarities", "map"):
        assert json.loads(json.dumps(again[name])) == content[name], name
