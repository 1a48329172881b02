"""Write index.md of this folder from index.txt: each `{{expression}}` is replaced by numbers of the two JSON files.

    python docs/atlas/write_index.py

`en` and `zh` are the English and the Chinese atlas (`AtlasNumbers`). No number of a result is typed in index.txt, and a
`{{en.check(...)}}` stands behind each conclusion: where it is no longer true, nothing is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
VALUE = re.compile(r"\{\{(.+?)\}\}", re.DOTALL)
SHORT_RUNS = "mini-short"
SUFFIXES = {"percent": " %", "points": " points", "nats": " nats", "bits": " bits"}


@dataclass(frozen=True)
class AtlasNumbers:
    """The numbers of an atlas as text. Models are chosen by name, or by verdict among the finished trained ones."""

    record: Mapping[str, Any]

    @cached_property
    def cells(self) -> dict[tuple[str, str], dict[str, Any]]:
        """The verdicts by finding and model."""
        return {(each["finding"], each["model"]): each for each in self.record["verdicts"]}

    @cached_property
    def findings(self) -> dict[str, dict[str, Any]]:
        """The findings by id."""
        return {each["id"]: each for each in self.record["findings"]}

    @property
    def trained(self) -> list[str]:
        """The finished trained models."""
        return [each["name"] for each in self.record["models"] if each["is_finished"]]

    @property
    def short_runs(self) -> list[str]:
        """The finished runs of few steps, which differ in their seed."""
        return [name for name in self.trained if name.startswith(SHORT_RUNS)]

    @property
    def long_trained(self) -> list[str]:
        """The finished trained models without the short runs."""
        return [name for name in self.trained if name not in self.short_runs]

    @property
    def deep(self) -> list[str]:
        """Those of at least six layers."""
        layers = {each["name"]: each["n_layers"] for each in self.record["models"]}
        return [name for name in self.long_trained if layers[name] >= 6]

    @property
    def only_long_training(self) -> list[str]:
        """Findings that hold in all models trained for long, not in all short runs, and not without training."""
        untrained = [each["name"] for each in self.record["models"] if not each["is_trained"]]
        return [
            id
            for id, each in self.findings.items()
            if each["agreement"] not in ("universal", "without training")
            and {self._verdict(id, name) for name in self.long_trained} == {"holds"}
            and all(self._verdict(id, name) != "holds" for name in untrained)
        ]

    def __len__(self) -> int:
        return len(self.findings)

    def count(self, agreement: str) -> int:
        """How many findings have an agreement, such as `universal`."""
        return sum(each["agreement"] == agreement for each in self.findings.values())

    def headlines(self, agreement: str) -> str:
        """The findings with an agreement as a list."""
        return self.listing([id for id, each in self.findings.items() if each["agreement"] == agreement])

    def listing(self, findings: Sequence[str]) -> str:
        """The headlines of findings as a list."""
        return "\n".join(f"- {self.findings[id]['headline']}" for id in findings)

    def holding(self, finding: str, verdict: str = "holds") -> list[str]:
        """The finished trained models with a verdict."""
        return [name for name in self.trained if self._verdict(finding, name) == verdict]

    def names(self, finding: str, verdict: str = "holds") -> str:
        """The names of the finished trained models with a verdict."""
        return _join(self.holding(finding, verdict))

    def _verdict(self, finding: str, model: str) -> str:
        return self.cells[finding, model]["verdict"] if (finding, model) in self.cells else "not judged"

    def value(self, finding: str, model: str, field: str = "value") -> str:
        """A number of a verdict with its unit: its `value`, `baseline`, `untrained`, `effect`, `best_head` ..."""
        return self._format(finding, self.cells[finding, model][field], with_unit=True)

    def number(self, finding: str, model: str) -> str:
        """The estimate of a verdict with its interval: `87 % [85, 89]`, with one more digit if its ends look equal."""
        cell = self.cells[finding, model]
        for further in (0, 1):
            low, high = (self._format(finding, cell[end], with_unit=False, further=further) for end in ("low", "high"))
            if low != high:
                break
        return f"{self._format(finding, cell['value'], with_unit=True, further=further)} [{low}, {high}]"

    def spread(self, finding: str, models: Sequence[str] | None = None, field: str = "value") -> str:
        """The lowest and highest number of some models (those in which the finding holds): `60 % to 87 %`."""
        chosen = self.holding(finding) if models is None else models
        values = sorted(self.cells[finding, model][field] for model in chosen)
        first, last = (self._format(finding, value, with_unit=True) for value in (values[0], values[-1]))
        return first if first == last else f"{first} to {last}"

    def _format(self, finding: str, value: float | None, *, with_unit: bool, further: int = 0) -> str:
        assert value is not None, f"{finding} has no such number"
        unit = self.findings[finding]["unit"]
        is_percent = unit in ("percent", "points")
        text = f"{100 * value:.{further}f}" if is_percent else f"{value:.{2 + further}f}"
        return text + (SUFFIXES.get(unit, "") if with_unit else "")

    def differences(self, **fields: object) -> int:
        """How many differences of two models have these values of fields, such as is_significant=True."""
        return sum(all(each[name] == value for name, value in fields.items()) for each in self.record["differences"])

    @property
    def differences_judged_here(self) -> list[dict[str, Any]]:
        """The differences of models whose resamples are there: all but the short runs."""
        added = {each["name"] for each in self.record["models"] if each["name"].startswith(SHORT_RUNS)}
        return [each for each in self.record["differences"] if not {each["first"], each["second"]} & added]

    def holding_names(self, model: str) -> list[str]:
        """The findings that hold in a model."""
        return [id for id in self.findings if self._verdict(id, model) == "holds"]

    def appearing(self, run_name: str, after: float | None = None) -> list[str]:
        """The findings of a training run that appear after a progress; None: from the first checkpoint on."""
        [run] = [each for each in self.record["training_runs"] if each["name"] == run_name]
        return [each["finding"] for each in run["appearances"] if each["after"] == after]

    def shared(self, first: str, second: str) -> list[dict[str, Any]]:
        """The layers of two models that come from a common ancestor, in order."""
        pairs = [each for each in self.record["shared_layers"] if {each["first"], each["second"]} == {first, second}]
        return [
            {"layer": each[f"{role}_layer"], "of": each[f"{other}_layer"], "cosine": each["cosine"]}
            for each in pairs
            for role, other in [("first", "second") if each["first"] == first else ("second", "first")]
        ]

    def layers(self, first: str, second: str) -> str:
        """The layers of the second model that are those of the first one: `4, 8 and 12`."""
        return _join([str(each["of"]) for each in sorted(self.shared(first, second), key=lambda each: each["layer"])])

    def cosines(self, first: str, second: str) -> str:
        """The lowest and highest cosine of these layers."""
        values = sorted(each["cosine"] for each in self.shared(first, second))
        return f"{values[0]:.2f} to {values[-1]:.2f}"

    def check(self, condition: bool) -> str:
        """Nothing, if what the text says is so."""
        assert condition, "a conclusion of index.txt is not what the numbers say"
        return ""

    def agree(self, agreement: str, *findings: str) -> str:
        """Nothing, if the findings have this agreement."""
        for finding in findings:
            found = self.findings[finding]["agreement"]
            assert found == agreement, f"{finding}: {found}, and the text says {agreement}"
        return ""


def _join(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)


def read_numbers(corpus: str) -> AtlasNumbers:
    """The numbers of one of the two atlases."""
    return AtlasNumbers(json.loads((FOLDER / f"{corpus}.json").read_text("utf-8")))


def render_index(text: str) -> str:
    """The text with the values of its expressions."""
    values = {"en": read_numbers("english"), "zh": read_numbers("chinese")}
    return VALUE.sub(lambda match: _format_value(eval(match[1], dict(values))), text)


def _format_value(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def write_index() -> None:
    """Write index.md."""
    (FOLDER / "index.md").write_text(render_index((FOLDER / "index.txt").read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    write_index()
