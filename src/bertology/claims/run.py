"""Judge claims for a model: run every analysis they need once, in as few passes as possible, and judge the results."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from bertology.analyses import registry
from bertology.analyses.declaration import Analysis
from bertology.analyses.run import (
    ForwardPass,
    NotifyFunction,
    ProgressEstimate,
    ProgressFactory,
    Request,
    RunInputs,
    build_run_inputs,
    count_words,
    estimate_run_seconds,
    run_all,
    with_partner,
)
from bertology.claims.answer import describe_caveat, write_answer
from bertology.claims.catalogue import all_claims, read_claims
from bertology.claims.claim import Claim, ClaimRun
from bertology.claims.judge import judge
from bertology.claims.strip import Strip, strip
from bertology.claims.verdict import OUTCOMES, Outcome, Verdict, count_verdicts
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import load_corpus
from bertology.encoder.encoder import Encoder, describe_encoder
from bertology.encoder.load import as_encoder
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal, count_noun, unknown_name
from bertology.recording.overflow import Overflow
from bertology.recording.plan import RecordingConfig
from bertology.recording.recording import ComputedArrays, Recording
from bertology.results.result import Result, versions
from bertology.results.results import unique_names

if TYPE_CHECKING:
    import pandas

DEFAULT_CORPUS = "english"
MAX_UNKNOWN = 0.1
"""A corpus with a larger share of tokens that the tokeniser does not know is refused."""
N_LANGUAGE_EXAMPLES = 100
"""So many examples decide which built-in corpus is in the language of a corpus."""

NO_FINE_TUNED_MODEL = Refusal(
    "This claim is about a fine-tuned model, and none was given",
    "a fine-tuned model",
    "Name one with --against, for example --against mini-pairs, or its recording with --against-recording",
)


def _no_stimuli_refusal(corpus: str) -> Refusal:
    return Refusal(
        f"This claim is tested on its own stimuli ({corpus}), and the recording is of another corpus",
        f"a model, or a recording of {corpus}",
        f"Run `bertology claims MODEL`, or `bertology record MODEL {corpus} --sites attention,hidden -o DIR` and "
        "`bertology claims --recording DIR`",
    )


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


class ClaimsArguments(TypedDict, total=False):
    """The keyword arguments of `claims`."""

    against: Any
    recording: Recording | None
    untrained: Recording | None
    papers: Sequence[str] | str
    claims: str | Path | None
    full: bool
    train_size: int | None
    limit: int | None
    fill: bool
    max_unknown: float
    overflow: Overflow | None
    store: str | Path | None
    progress: ProgressFactory | None
    notify: NotifyFunction | None


@overload
def claims(  # pyright: ignore[reportOverlappingOverload]  # a list is an object
    encoder: list[Any] | Iterator[Any], corpus: Any = None, **arguments: Unpack[ClaimsArguments]
) -> ClaimResultsByModel: ...
@overload
def claims(encoder: object = None, corpus: Any = None, **arguments: Unpack[ClaimsArguments]) -> ClaimResults: ...
def claims(
    encoder: Any = None,
    corpus: Any = None,
    *,
    against: Any = None,
    recording: Recording | None = None,
    untrained: Recording | None = None,
    papers: Sequence[str] | str = (),
    claims: str | Path | None = None,
    full: bool = False,
    train_size: int | None = None,
    limit: int | None = None,
    fill: bool = True,
    max_unknown: float = MAX_UNKNOWN,
    overflow: Overflow | None = None,
    store: str | Path | None = None,
    progress: ProgressFactory | None = None,
    notify: NotifyFunction | None = None,
) -> ClaimResults | ClaimResultsByModel:
    """Test published findings on a model: each holds, fails, is inconclusive or does not apply.

    `encoder` and `corpus` are what `bertology.run` takes; the corpus is the built-in English one if none is given, and
    a list of models gives the verdicts of each. `against` is a model fine-tuned from it, for the claims about
    fine-tuning. Only the claims of `papers` are tested, if there are any, and those of the file `claims`; `full` adds
    the claims that take minutes. `train_size` is the maximum number of sentences probes are trained on.

    Claims that need what the corpus lacks (trees, parts of speech, entities) are tested on the built-in corpus of its
    language, and say so, unless `fill` is false. A corpus of which the tokeniser does not know more than the share
    `max_unknown` is refused. `overflow` says what is done with inputs longer than the model allows; if it is not given,
    they are skipped, and interventions treat them as in training. With a `store` (a directory) recordings and results
    are kept and reused.
    """
    selected = select_claims(
        [papers] if isinstance(papers, str) else papers, file=claims, full=full, train_size=train_size
    )
    is_list = isinstance(encoder, list | Iterator)
    inputs = build_run_inputs(
        None if is_list else encoder,
        None if recording is not None else DEFAULT_CORPUS if corpus is None else corpus,
        recording=recording,
        untrained=untrained,
        config=RecordingConfig(overflow=overflow or "skip"),
        store=store,
        models_follow=is_list,
        title="claims",
    )
    if limit is not None and recording is None and inputs.corpus is not None:
        inputs = replace(inputs, corpus=inputs.corpus[:limit])
    inputs = with_partner(inputs, against)
    options: dict[str, Any] = {
        "papers": list([papers] if isinstance(papers, str) else papers),
        "claims": None if claims is None else str(claims),
        "full": full,
        "train_size": train_size,
        "limit": limit,
        "fill": fill,
        "max_unknown": max_unknown,
        "overflow": overflow,
    }

    def test(model: Encoder | None) -> ClaimResults:
        model_inputs = inputs if model is None else replace(inputs, encoder=model)
        filling = _filling_corpus(model_inputs.corpus, limit) if fill and model_inputs.encoder is not None else None
        judged = judge_claims(
            selected,
            model_inputs,
            progress=progress,
            notify=notify,
            filling=filling,
            max_unknown=max_unknown,
            overflow=overflow,
        )
        return replace(judged, options=options)

    if not is_list:
        return test(None)
    by_model = [test(as_encoder(model)) for model in encoder]
    names = unique_names([results.inputs.model_names["recording"] for results in by_model])
    return ClaimResultsByModel(dict(zip(names, by_model, strict=True)))


def select_claims(
    papers: Sequence[str], *, file: str | Path | None = None, full: bool = False, train_size: int | None = None
) -> tuple[Claim, ...]:
    """The claims of these papers and of the file; without either all claims, the slow ones only with `full`."""
    known = sorted({claim.paper for claim in all_claims()})
    for paper in papers:
        if paper not in known:
            raise unknown_name("paper with claims", paper, known)
    selected = [claim for claim in all_claims() if claim.paper in papers]
    if file is not None:
        selected += read_claims(Path(file))
    elif not papers:
        selected = [claim for claim in all_claims() if full or not claim.slow]
    return tuple(selected if train_size is None else (claim.with_train_size(train_size) for claim in selected))


MIN_HAN_SHARE = 0.3
"""A text with this share of Chinese characters among its letters is taken for Chinese."""


def _filling_corpus(corpus: Corpus | None, limit: int | None) -> Corpus | None:
    """The built-in treebank in the language of the corpus; None if the corpus is that treebank."""
    if corpus is None:
        return None
    letters = [
        letter for sentence in corpus[:N_LANGUAGE_EXAMPLES].sentences for letter in sentence.text if letter.isalpha()
    ]
    is_chinese = sum("\u4e00" <= letter <= "\u9fff" for letter in letters) > MIN_HAN_SHARE * len(letters)
    treebank = load_corpus("chinese" if is_chinese else DEFAULT_CORPUS)
    return None if treebank.name == corpus.name else treebank[:limit]


def count_unknown_tokens(model: Encoder | Recording, corpus: Corpus) -> UnknownTokens:
    """Count the tokens of a corpus, and those the model's tokeniser does not know, without special tokens."""
    if isinstance(model, Recording):
        inputs, name = [recorded.tokens for recorded in model.inputs], model.encoder.name
    else:
        inputs, name = model.tokenise([text for example in corpus for text in example.text_inputs]), model.name
    n_tokens = sum(int((tokens.special_kinds == SpecialToken.NONE).sum()) for tokens in inputs)
    return UnknownTokens(name, corpus.name, sum(tokens.n_unknown for tokens in inputs), n_tokens)


def judge_claims(
    claims: Sequence[Claim],
    inputs: RunInputs,
    *,
    progress: ProgressFactory | None = None,
    notify: NotifyFunction | None = None,
    filling: Corpus | None = None,
    max_unknown: float = 1.0,
    overflow: Overflow | None = None,
) -> ClaimResults:
    """Judge the claims. Results are cached in the store, so that an interrupted run resumes.

    Claims whose analyses refuse the corpus are tested on `filling`, if it is given. A corpus with more unknown tokens
    than the share `max_unknown` is refused; claims with stimuli like this do not apply. `overflow` is the option of
    that name of analyses that evaluate whole examples; recordings have it in the inputs.
    """
    unknown_tokens = _count_unknown_tokens(inputs)
    for count in unknown_tokens:
        count.check(max_unknown)
    runs = [run for claim in claims for run in claim.all_runs.values()]
    outcomes: dict[str, Result | Refusal] = {}
    batches: list[_AnalysisBatch] = []
    for target, corpus in dict.fromkeys((run.target, run.corpus) for run in runs):
        batch_runs = {_run_key(run): run for run in runs if (run.target, run.corpus) == (target, corpus)}
        if target == "against" and inputs.against is None and inputs.against_recording is None:
            outcomes |= dict.fromkeys(batch_runs, NO_FINE_TUNED_MODEL)
            continue
        known, unknown = _declared_analyses(batch_runs, overflow)
        outcomes |= unknown
        batch_inputs = _with_corpus(_select_target(inputs, target), corpus)
        if corpus is not None and batch_inputs.encoder is None and batch_inputs.recording is None:
            recordable = [key for key, (analysis, _) in known.items() if "encoder" not in analysis.required_inputs]
            outcomes |= dict.fromkeys(recordable, _no_stimuli_refusal(corpus))
            known = {key: request for key, request in known.items() if key not in recordable}
        if corpus is not None and (refusal := _unreadable(batch_inputs, max_unknown)) is not None:
            outcomes |= dict.fromkeys(known, refusal)
            continue
        batches.append(_AnalysisBatch.sorted_by_cost(known, batch_inputs))
    total = sum(batch.estimated_seconds for batch in batches)
    estimate = ProgressEstimate(progress("everything") if progress else None, total)
    passes: list[ForwardPass] = []
    filled: set[str] = set()

    def run_batch(batch: _AnalysisBatch, expected_seconds: float) -> dict[str, Result | Refusal]:
        with estimate.stage(expected_seconds):
            report = run_all(
                list(batch.requests.values()),
                batch.inputs,
                progress=progress,
                notify=notify,
                cache_results=True,
                progress_estimate=estimate,
            )
        passes.extend(report.passes)
        return dict(zip(batch.requests, report.outcomes, strict=True))

    for batch in batches:
        of_batch = run_batch(batch, batch.estimated_seconds)
        outcomes |= of_batch
        refused = batch.only([key for key, outcome in of_batch.items() if isinstance(outcome, Refusal)])
        if filling is None or not refused.requests or batch.inputs.corpus is not inputs.corpus:
            continue
        refused = replace(refused, inputs=replace(refused.inputs, corpus=filling))
        if _unreadable(refused.inputs, max_unknown) is None:
            again = {key: outcome for key, outcome in run_batch(refused, 0.0).items() if isinstance(outcome, Result)}
            outcomes |= again
            filled |= again.keys()
    return ClaimResults(
        tuple(_claim_result(claim, outcomes, inputs, filling, filled) for claim in claims),
        inputs,
        tuple(passes),
        dict(estimate.elapsed),
        unknown_tokens,
        filling,
    )


def _count_unknown_tokens(inputs: RunInputs) -> tuple[UnknownTokens, ...]:
    """The unknown tokens of the corpus for the model and the model to compare with."""
    models = (inputs.recording or inputs.encoder, inputs.against_recording or inputs.against)
    corpus = inputs.corpus
    return tuple(count_unknown_tokens(model, corpus) for model in models if model is not None and corpus is not None)


def _unreadable(inputs: RunInputs, max_unknown: float) -> Refusal | None:
    """Why the model cannot read the stimuli of a claim, or a built-in corpus, if it cannot."""
    try:
        for count in _count_unknown_tokens(inputs):
            count.check(max_unknown)
    except Refusal as refusal:
        return refusal
    return None


@dataclass(frozen=True)
class _AnalysisBatch:
    """The requests of one model and corpus, by run key."""

    requests: Mapping[str, Request]
    inputs: RunInputs

    @classmethod
    def sorted_by_cost(cls, analyses: Mapping[str, Request], inputs: RunInputs) -> _AnalysisBatch:
        """Cheap analyses first, so that more is finished if the run is interrupted."""
        n_words = count_words(inputs.corpus)
        order = sorted(analyses, key=lambda key: analyses[key][0].cost.estimate(n_words))
        return cls({key: analyses[key] for key in order}, inputs)

    def only(self, keys: Sequence[str]) -> _AnalysisBatch:
        """Some of the requests."""
        return replace(self, requests={key: self.requests[key] for key in keys})

    @property
    def estimated_seconds(self) -> float:
        """Estimated seconds, for comparison with other batches."""
        return estimate_run_seconds(list(self.requests.values()), self.inputs)


def _declared_analyses(
    runs: Mapping[str, ClaimRun], overflow: Overflow | None
) -> tuple[dict[str, Request], dict[str, Refusal]]:
    """The requests of runs whose analysis exists, and refusals of the others."""
    known: dict[str, tuple[Analysis, Mapping[str, object]]] = {}
    unknown: dict[str, Refusal] = {}
    for key, run in runs.items():
        try:
            analysis = registry.get(run.analysis)
            given = {} if overflow is None or "overflow" not in analysis.options else {"overflow": overflow}
            known[key] = analysis, {**given, **run.options}
        except Refusal as refusal:
            unknown[key] = refusal
    return known, unknown


def _claim_result(
    claim: Claim,
    outcomes: Mapping[str, Result | Refusal],
    inputs: RunInputs,
    filling: Corpus | None,
    filled: Collection[str],
) -> ClaimResult:
    keys = {name: _run_key(run) for name, run in claim.all_runs.items()}
    by_name = {name: outcomes[key] for name, key in keys.items()}
    results = tuple(outcome for outcome in by_name.values() if isinstance(outcome, Result))
    verdict = judge(claim, by_name, untrained_remedy=_untrained_remedy(inputs))
    is_filled = filling is not None and any(key in filled for key in keys.values())
    return ClaimResult(
        claim, verdict, results, _model_names(claim, inputs), filling.name if filling is not None and is_filled else ""
    )


def _untrained_remedy(inputs: RunInputs) -> str:
    """How to measure the untrained model beside a recording that was given without it."""
    recording = inputs.recording
    if recording is None or inputs.untrained_recording is not None:
        return ""
    if recording.config.get("source") == "arrays":
        return "arrays of another program have none; give the model itself"
    sites = ",".join(sorted(name for name, arrays in recording.sites.items() if not isinstance(arrays, ComputedArrays)))
    record = f"bertology record random:{recording.encoder.name} {recording.corpus.name} --sites {sites} -o DIR"
    return f"record it with `{record}` and name it with --untrained-recording DIR"


def _model_names(claim: Claim, inputs: RunInputs) -> tuple[str, ...]:
    """The models a claim is about: the model, the one given with --against, or both."""
    names = inputs.model_names
    roles: set[str] = set()
    for run in claim.all_runs.values():
        analysis = registry.find(run.analysis)
        roles |= {"recording" if run.target == "model" else "against"}
        roles |= {"against"} & set(analysis.inputs if analysis is not None else ())
    return tuple(names[role] for role in ("recording", "against") if role in roles and role in names)


def _run_key(run: ClaimRun) -> str:
    return json.dumps([run.analysis, dict(run.options), run.corpus, run.target], sort_keys=True)


def run_inputs_for(inputs: RunInputs, run: ClaimRun) -> RunInputs:
    """The model and corpus of one run of a claim."""
    return _with_corpus(_select_target(inputs, run.target), run.corpus)


def _select_target(inputs: RunInputs, target: str) -> RunInputs:
    """The inputs with the model a claim is about: the model itself, or the one given with --against."""
    if target == "model":
        return inputs
    return replace(
        inputs,
        encoder=inputs.against,
        against=None,
        recording=inputs.against_recording,
        against_recording=None,
        untrained_recording=None,
    )


def _with_corpus(inputs: RunInputs, corpus: str | None) -> RunInputs:
    """The inputs with the stimuli of a claim as corpus; recordings stay only if they are of these stimuli."""
    if corpus is None:
        return inputs
    stimuli = load_corpus(corpus)
    if inputs.recording is not None and inputs.recording.corpus.fingerprint == stimuli.fingerprint:
        return inputs
    return replace(inputs, corpus=stimuli, recording=None, against_recording=None, untrained_recording=None)
