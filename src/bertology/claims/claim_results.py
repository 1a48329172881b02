"""The verdicts of claims: of one claim, of one model on all claims, and of several models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, overload

from bertology.analyses.run import (
    ForwardPass,
    RunInputs,
)
from bertology.claims.answer import describe_caveat, write_answer
from bertology.claims.claim import Claim
from bertology.claims.strip import Strip, strip
from bertology.claims.verdict import OUTCOMES, Outcome, Verdict, count_verdicts
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder, describe_encoder
from bertology.errors import Refusal, count_noun, unknown_name
from bertology.recording.recording import Recording
from bertology.results.result import Result, versions

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class ClaimResult:
    """A claim, its verdict, the results it is based on, and the names of the models it is about.

    `filled_from` is the built-in corpus it was tested on because the given one lacks what it needs; else empty.
    """

    claim: Claim
    verdict: Verdict
    results: tuple[Result, ...] = field(repr=False)
    models: tuple[str, ...] = ()
    filled_from: str = ""

    @property
    def corpora(self) -> tuple[str, ...]:
        """The names of the corpora it was tested on."""
        described = (value for result in self.results for value in result.inputs.values())
        names = (value["corpus"]["name"] for value in described if isinstance(value, dict) and "corpus" in value)
        return tuple(dict.fromkeys(names))

    @property
    def headline(self) -> str:
        """The finding in a few words, denied if it fails, a question if it is not decided."""
        return self.claim.headline_for(self.verdict.outcome)

    @property
    def answer(self) -> str:
        """The answer in sentences: yes, no or undecided, the numbers, and what they are compared with."""
        return write_answer(self.claim, self.verdict, self.filled_from)

    @property
    def strip(self) -> Strip | None:
        """The numbers on one scale, to be drawn; None if nothing was measured."""
        return strip(self.claim, self.verdict)

    def as_record(self) -> dict[str, Any]:
        """The claim and its verdict as plain values; numbers are those of the first comparison."""
        claim = self.claim
        return {
            "id": claim.id,
            "topic": claim.topic,
            "headline": self.headline,
            "claim": claim.statement,
            "paper": claim.paper,
            "section": claim.section,
            **claim.model_dump(mode="json", include={"published", "published_baseline"}),
            "published_value": claim.published_value,
            "analyses": [run.analysis for run in claim.all_runs.values()],
            "models": list(self.models),
            "corpora": list(self.corpora),
            "filled_from": self.filled_from or None,
            **self.verdict.as_record(),
            "caveats": [describe_caveat(caveat, claim.unit) for caveat in self.verdict.caveats],
            "answer": self.answer,
        }


@dataclass(frozen=True)
class UnknownTokens:
    """How many tokens of a corpus are unknown to the tokeniser of a model."""

    model: str
    corpus: str
    n_unknown: int
    n_tokens: int

    @property
    def share(self) -> float:
        """The share of unknown tokens, special tokens not counted."""
        return self.n_unknown / self.n_tokens if self.n_tokens else 0.0

    def __str__(self) -> str:
        numbers = f"{self.n_unknown:,} of {self.n_tokens:,} tokens ({self.share:.1%}) are unknown"
        return f"{self.corpus}: {numbers} to the tokeniser of {self.model}"

    def check(self, maximum: float) -> None:
        """Refuse a corpus that the model cannot read."""
        if self.share > maximum:
            raise Refusal(
                str(self),
                f"at most {maximum:.0%}; what a model does with unknown tokens says nothing about the findings",
                "Use a corpus in a language of the model, or a model of the language of the corpus; "
                "--max-unknown-tokens 1 goes on all the same",
            )


@dataclass(frozen=True, eq=False, repr=False)
class ClaimResults(Sequence[ClaimResult]):
    """The verdicts in the order of the claims, with what they were measured on and what it took.

    `filling` is the built-in corpus that stands in where the given corpus lacks something. `passes` are the forward
    passes made, `elapsed` the seconds each part took.
    """

    results: tuple[ClaimResult, ...]
    inputs: RunInputs
    passes: tuple[ForwardPass, ...] = ()
    elapsed: Mapping[str, float] = field(default_factory=dict[str, float])
    unknown_tokens: tuple[UnknownTokens, ...] = ()
    filling: Corpus | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @overload
    def __getitem__(self, index: int | str) -> ClaimResult: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ClaimResult, ...]: ...
    def __getitem__(self, index: int | str | slice) -> ClaimResult | tuple[ClaimResult, ...]:
        """A result by position or by the id of its claim."""
        if not isinstance(index, str):
            return self.results[index]
        by_id = {result.claim.id: result for result in self.results}
        if index not in by_id:
            raise unknown_name("claim among these", index, by_id)
        return by_id[index]

    def __len__(self) -> int:
        return len(self.results)

    def __repr__(self) -> str:
        models, corpus = " and ".join(self.inputs.model_names.values()), self.inputs.corpus
        tested = f"{models} on {corpus.name}" if corpus is not None else models
        return f"{count_noun(len(self), 'claims')} tested with {tested}: {self.summary}."

    @property
    def summary(self) -> str:
        """The number of each outcome, as text."""
        return count_verdicts([result.verdict for result in self.results])

    def counts(self) -> dict[Outcome, int]:
        """The number of each outcome."""
        return {outcome: sum(r.verdict.outcome == outcome for r in self.results) for outcome in OUTCOMES}

    def filling_note(self) -> str:
        """How many claims were tested on a built-in corpus instead of the given one, in a sentence; empty if none."""
        filled = [result for result in self.results if result.filled_from]
        if not filled or self.inputs.corpus is None:
            return ""
        return (
            f"{self.inputs.corpus.name} lacks what {count_noun(len(filled), 'claims')} "
            f"{'needs' if len(filled) == 1 else 'need'} (trees, parts of speech, entities ...): tested on the built-in "
            f"corpus {filled[0].filled_from} instead; --no-fill leaves them out."
        )

    def records(self) -> list[dict[str, Any]]:
        """One flat record per claim, for data frames."""
        numbers = ("measure", "row", "head", "value", "low", "high", "n", "interval")
        records: list[dict[str, Any]] = []
        for result in self.results:
            record = result.as_record()
            baseline: Mapping[str, Any] = record["baseline"] or {}
            records.append(
                {
                    **{name: record[name] for name in ("id", "paper", "section", "claim")},
                    "model": " and ".join(record["models"]),
                    "corpus": " and ".join(record["corpora"]),
                    **{name: record[name] for name in ("verdict", "specificity")},
                    **{name: record.get(name) for name in numbers},
                    "baseline": baseline.get("name"),
                    "baseline_value": baseline.get("value"),
                    **{name: record[name] for name in ("published", "published_baseline", "published_value")},
                }
            )
        return records

    def to_pandas(self) -> pandas.DataFrame:
        """One row per claim: verdict, estimate, interval, n, baseline and published value."""
        import pandas

        return pandas.DataFrame(self.records())

    def to_json(self) -> dict[str, Any]:
        """A JSON object: model, corpus, versions, options, and each claim with its verdict and numbers."""
        inputs = self.inputs
        is_filled = any(result.filled_from for result in self.results)
        return {
            "model": _describe_model(inputs.recording, inputs.encoder),
            "against": _describe_model(inputs.against_recording, inputs.against),
            "corpus": None if inputs.corpus is None else inputs.corpus.summary(),
            "filled_from": self.filling.summary() if is_filled and self.filling is not None else None,
            "versions": versions(),
            "options": dict(self.options),
            "unknown_tokens": [asdict(count) for count in self.unknown_tokens],
            "summary": self.summary,
            "outcomes": self.counts(),
            "claims": [result.as_record() for result in self.results],
        }


@dataclass(frozen=True, eq=False, repr=False)
class ClaimResultsByModel(Mapping[str, ClaimResults]):
    """The verdicts of several models on the same claims, by model."""

    by_model: Mapping[str, ClaimResults]

    def __getitem__(self, model: str) -> ClaimResults:
        if model not in self.by_model:
            raise unknown_name("model among these", model, self.by_model)
        return self.by_model[model]

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_model)

    def __len__(self) -> int:
        return len(self.by_model)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.by_model.values()))

    def verdicts(self) -> dict[str, dict[str, Verdict]]:
        """The verdicts by the id of the claim and the model."""
        first = next(iter(self.by_model.values()))
        return {
            result.claim.id: {model: results[index].verdict for model, results in self.by_model.items()}
            for index, result in enumerate(first)
        }

    def to_pandas(self) -> pandas.DataFrame:
        """One row per claim and model, with the columns of `ClaimResults.to_pandas`; `model` is the model's name."""
        import pandas

        return pandas.concat([results.to_pandas() for results in self.by_model.values()], ignore_index=True)

    def to_json(self) -> dict[str, Any]:
        """A JSON object: `{"models": [...]}`, each as `ClaimResults.to_json` gives it."""
        return {"models": [results.to_json() for results in self.by_model.values()]}


def _describe_model(recording: Recording | None, encoder: Encoder | None) -> dict[str, Any] | None:
    if recording is not None:
        return recording.summary()["model"]
    return None if encoder is None else describe_encoder(encoder)
