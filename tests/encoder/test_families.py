"""Model families: every module declares one, and a new module is found without changing another file."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Generator
from importlib import import_module
from pathlib import Path

import pytest

import tiny_models
from bertology.encoder import families
from bertology.encoder.families import ModelFamily, find_family, is_layer, layer_specs, model_families

NEW_FAMILY = """
from bertology.encoder.families import ModelFamily
from bertology.encoder.families.bert import BERT_LAYER

FAMILY = ModelFamily(
    name="NewBERT", model_types=("newbert",), layer_classes=("NewBertLayer",), layer=BERT_LAYER, prunable=True
)
"""


@pytest.fixture
def new_family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    (tmp_path / "newbert.py").write_text(NEW_FAMILY, "utf-8")
    monkeypatch.setattr(families, "__path__", [*families.__path__, str(tmp_path)])
    model_families.cache_clear()
    layer_specs.cache_clear()
    yield
    sys.modules.pop("bertology.encoder.families.newbert", None)
    model_families.cache_clear()
    layer_specs.cache_clear()


def test_every_module_declares_one_family() -> None:
    modules = [
        import_module(f"{families.__name__}.{module.name}") for module in pkgutil.iter_modules(families.__path__)
    ]
    for module in modules:
        declared = [value for value in vars(module).values() if isinstance(value, ModelFamily)]
        assert declared == [module.FAMILY], module.__name__
        assert module.__doc__ and module.FAMILY.name and module.FAMILY.model_types and module.FAMILY.layer_classes
    assert model_families() == tuple(module.FAMILY for module in modules)


def test_names_model_types_and_layer_classes_are_unique() -> None:
    for values in (
        [family.name for family in model_families()],
        [model_type for family in model_families() for model_type in family.model_types],
        [name for family in model_families() for name in family.layer_classes],
    ):
        assert len(set(values)) == len(values)


@pytest.mark.parametrize("name", tiny_models.ALL_FAMILIES)
def test_the_paths_of_a_family_exist_in_its_models(name: str) -> None:
    encoder = tiny_models.encoder(name)
    family = find_family(encoder.model.config.model_type)
    assert family is not None
    layers = [module for module in encoder.model.modules() if is_layer(module)]
    assert {type(layer).__name__ for layer in layers} <= set(family.layer_classes)
    spec = family.layer
    for layer in layers:
        for path in (spec.attention, spec.output_projection, spec.attention_norm, *(spec.qkv_projections or ())):
            assert path is None or layer.get_submodule(path) is not None
    names = [f".{name}." for name, _ in encoder.model.named_modules()]
    assert all(any(f".{path}." in name for name in names) for path in family.embeddings)


def test_a_new_module_is_found(new_family: None) -> None:
    family = find_family("newbert")
    assert family is not None and family.name == "NewBERT"
    assert layer_specs()["NewBertLayer"] is family.layer


def test_an_unknown_model_type_has_no_family() -> None:
    assert find_family("newbert") is None
