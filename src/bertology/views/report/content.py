"""The content of a report, independent of its format: verdicts on claims, the analyses behind them, and methods."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from bertology.analyses.declaration import REPORT_SECTIONS, Analysis
from bertology.analyses.run import ForwardPass, describe_passes
from bertology.claims.claim import Claim
from bertology.claims.claim_results import ClaimResult
from bertology.claims.example_texts import ExampleTexts
from bertology.claims.verdict import count_verdicts
from bertology.corpus.language import Language
from bertology.errors import count_noun
from bertology.results.result import Result
from bertology.views.report.findings import Finding
from bertology.views.report.pictures import HeadScores

if TYPE_CHECKING:
    from bertology.views.report.finetuning.changes import FinetuningChanges

MIN_LISTED_SECONDS = 1.0
UNTRAINED_PREFIX = "random:"


@dataclass(frozen=True)
class ReportSubject:
    """The model and the corpus that a report is about.

    `description` is that of a built-in model, else empty. `against` is the model it is compared with, if any. `corpus`
    is the name of the corpus, which has `n_examples` of the `unit`: sentences or texts; its `language` is None if that
    is not known. `is_recorded` says that a recording was given in the place of both.
    """

    model: str
    corpus: str = ""
    n_layers: int = 0
    n_heads: int = 0
    description: str = ""
    n_examples: int = 0
    unit: str = "sentences"
    language: Language | None = None
    against: str = ""
    is_recorded: bool = False

    @property
    def name(self) -> str:
        """The model's name: of a path its last part."""
        return display_name(self.model)

    @property
    def sentence(self) -> str:
        """What the model is, what it read, and what it was compared with."""
        untrained = ", which has random weights," if self.model.startswith(UNTRAINED_PREFIX) else ""
        heads = f" of {count_noun(self.n_heads, 'heads')}" if self.n_heads else ""
        size = f" has {count_noun(self.n_layers, 'layers')}{heads}" if self.n_layers else ""
        read = f" and read {count_noun(self.n_examples, self.unit)} of {self.corpus}" if self.n_examples else ""
        against = f" {display_name(self.against)}, fine-tuned from it, stands beside it." if self.against else ""
        return f"{self.name}{untrained}{size}{read}.{against}"


def display_name(model: str) -> str:
    """The name of a model: the last part of a path, with the prefix of an untrained or static model."""
    prefix, separator, path = model.rpartition(":")
    is_path = path.startswith(("/", "./", "../", "~")) or "\\" in path
    return f"{prefix}{separator}{PurePath(path).name}" if is_path else model


@dataclass(frozen=True)
class AnalysisSection:
    """One analysis and its result."""

    analysis: Analysis
    result: Result

    @property
    def summary(self) -> str:
        """The first paragraph of the documentation."""
        return " ".join(self.analysis.description.split("\n\n")[0].split())

    @property
    def method(self) -> str:
        """The first two sentences of the documentation."""
        return " ".join(re.split(r"(?<=[.!?:])\s+(?=[A-Z`])", self.summary)[:2])

    @property
    def models(self) -> list[str]:
        """The names of the models the result is about; the untrained model is a baseline."""
        described = [self.result.inputs.get(role) for role in ("model", "against")]
        models = [inputs["model"] for inputs in described if isinstance(inputs, dict) and "model" in inputs]
        return [model["name"] for model in models]

    @property
    def special_tokens(self) -> str:
        """The special-token policy of the analysis."""
        return str(self.result.provenance.get("special_tokens", ""))


@dataclass(frozen=True)
class ReportContent:
    """Everything a report says.

    `attention_view` is the HTML of an embedded view, `example_texts` are the sentences behind claims by claim id,
    `text_names` the names of those that the view can show, by claim id and index of the example,
    `head_scores` the scores of all heads for the claims about one head, by claim id, `not_run` the claims that take
    minutes and were not tested, `failures` the analyses of plug-ins that ended in an error, and `finetuning` is what
    fine-tuning changed, if there are two models. `passes` are the forward passes over the corpora and `elapsed` the
    seconds of each part that was not in the store: they are told while the report is made and are no part of it,
    because they depend on the store.
    """

    subject: ReportSubject
    messages: Sequence[str]
    claim_results: Sequence[ClaimResult]
    sections: Sequence[AnalysisSection]
    passes: Sequence[ForwardPass] = ()
    attention_view: str = ""
    elapsed: Mapping[str, float] = field(default_factory=dict[str, float])
    example_texts: Mapping[str, ExampleTexts] = field(default_factory=dict[str, ExampleTexts])
    text_names: Mapping[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    head_scores: Mapping[str, HeadScores] = field(default_factory=dict[str, HeadScores])
    not_run: Sequence[Claim] = ()
    failures: Sequence[str] = ()
    finetuning: FinetuningChanges | None = None

    @property
    def title(self) -> str:
        """The question that the report answers."""
        return f"What {self.subject.name} looks at, and what it knows"

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """All claims, first those with a verdict, then those that were not tested."""
        tested = (Finding(result.claim, result) for result in self.claim_results)
        return (*tested, *(Finding(claim) for claim in self.not_run))

    @property
    def summary(self) -> str:
        """The number of claims and of each outcome."""
        outcomes = count_verdicts([result.verdict for result in self.claim_results])
        return f"{len(self.claim_results)} published claims tested: {outcomes}."

    @property
    def sections_by_heading(self) -> Iterator[tuple[str, list[AnalysisSection]]]:
        """The headings that have sections, in order, with their sections."""
        for heading in dict.fromkeys((*REPORT_SECTIONS, *(s.analysis.report_section for s in self.sections))):
            sections = [section for section in self.sections if section.analysis.report_section == heading]
            if sections:
                yield heading, sections

    @property
    def references(self) -> list[str]:
        """The cited papers, in full."""
        papers = {result.claim.paper: result.claim.reference for result in self.claim_results}
        return [papers[paper] for paper in sorted(papers)]

    @property
    def input_counts(self) -> dict[str, dict[str, Any]]:
        """For each model and corpus the numbers of inputs read, truncated and skipped, and of aligned tokens."""
        counts: dict[str, dict[str, Any]] = {}
        for section in self.sections:
            for recording in section.result.inputs.values():
                if isinstance(recording, dict) and "counts" in recording:
                    corpus = recording["corpus"]
                    name = f"{recording['model']['name']} on {corpus['name']}"
                    counts[name] = {**recording["counts"], **corpus["skipped"]}
        return counts

    @property
    def passes_summary(self) -> str:
        """The forward passes of each model over each corpus, in a sentence."""
        return describe_passes(self.passes)

    @property
    def timing_summary(self) -> str:
        """The computing time, in a sentence; empty if everything was cached."""
        if not self.elapsed:
            return ""
        slowest = sorted(self.elapsed.items(), key=lambda item: -item[1])
        listed = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in slowest if seconds >= MIN_LISTED_SECONDS)
        return f"Computation took {sum(self.elapsed.values()):.0f} s{f' ({listed})' if listed else ''}."

    def distinguishing_facts(self, section: AnalysisSection) -> list[str]:
        """The corpora of a section, and the options in which it differs from other sections of its analysis."""
        result = section.result
        same = [other.result for other in self.sections if other.result.analysis == result.analysis]
        recordings = [value for value in result.inputs.values() if isinstance(value, dict) and "corpus" in value]
        corpora = dict.fromkeys(recording["corpus"]["name"] for recording in recordings)
        options = {k: v for k, v in result.options.items() if any(other.options.get(k) != v for other in same)}
        return [*corpora, *(f"{name.replace('_', ' ')}: {value}" for name, value in options.items())]

    def anchor(self, section: AnalysisSection) -> str:
        """The id of a section on the page: the name of its analysis, numbered from the second section on."""
        same = [other for other in self.sections if other.result.analysis == section.result.analysis]
        number = next(i for i, other in enumerate(same, start=1) if other is section)
        name = f"analysis-{section.result.analysis.replace('/', '-').replace('_', '-')}"
        return name if number == 1 else f"{name}-{number}"

    def find_section(self, result: Result) -> AnalysisSection | None:
        """The section of a result."""
        return next((section for section in self.sections if section.result is result), None)


def lead_sentence(content: ReportContent) -> str:
    """The model, the corpus and what was done, in two sentences."""
    n_tested = sum(result.verdict.outcome != "not applicable" for result in content.claim_results)
    done = (
        f" {count_noun(n_tested, 'published findings')} about BERT and its kin {'was' if n_tested == 1 else 'were'} "
        "tested on it, each beside what chance, a simple rule and the same model without training give."
        if n_tested
        else ""
    )
    return content.subject.sentence + done
