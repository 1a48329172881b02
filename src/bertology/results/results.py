"""`Results`: the results of several analyses, several models, or both, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from bertology.results.result import Result

if TYPE_CHECKING:
    import pandas

    from bertology.results.comparison import ModelTable

T = TypeVar("T", bound="Result | Results[Any]")
Axis = Literal["analysis", "model"]


@dataclass(frozen=True, eq=False, repr=False)
class Results(Mapping[str, T], Generic[T]):
    """Results by the name of their analysis, or of their model; of several analyses and models, first by analysis."""

    by_name: Mapping[str, T]
    axis: Axis

    def __getitem__(self, name: str) -> T:
        from bertology.results.measure import match_name

        return self.by_name[match_name(self.axis, name, self.by_name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_name)

    def __len__(self) -> int:
        return len(self.by_name)

    def __repr__(self) -> str:
        return f"Results by {self.axis}: {', '.join(self.by_name)}"

    def all_results(self) -> list[Result]:
        """Every result, in order."""
        nested = [[value] if isinstance(value, Result) else value.all_results() for value in self.by_name.values()]
        return [result for results in nested for result in results]

    def table(self) -> ModelTable:
        """One table: a row for each measure, layer or row of a table, a column for each model."""
        from bertology.results.comparison import compare_results

        by_analysis: dict[str, dict[str, Result]] = {}
        for name, value in self.by_name.items():
            if isinstance(value, Result):
                model = name if self.axis == "model" else model_name(value)
                by_analysis.setdefault(value.analysis, {})[model] = value
            else:
                by_analysis[name] = dict(value)
        return compare_results(by_analysis)

    def to_pandas(self) -> pandas.DataFrame:
        """The numbers of all results as one data frame, with the columns of `Result.to_pandas`."""
        import pandas

        frames = [value.to_pandas().assign(**{self.axis: name}) for name, value in self.by_name.items()]
        return pandas.concat(frames, ignore_index=True)

    def to_json(self) -> dict[str, Any]:
        """A JSON object with all results: `{"results": [...]}`, each as `Result.to_json` gives it."""
        return {"results": [result.to_json() for result in self.all_results()]}


def model_name(result: Result) -> str:
    """The name of the model a result is about; empty if it is about a corpus."""
    return str(result.inputs.get("model", {}).get("model", {}).get("name", ""))


def unique_names(names: list[str]) -> list[str]:
    """The names, numbered from the second on where one is repeated: `mini`, `mini (2)`."""
    return [
        name if (number := names[:index].count(name) + 1) == 1 else f"{name} ({number})"
        for index, name in enumerate(names)
    ]
