"""Run analyses: collect the sites all of them need, record once, hand each its arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bertology.analyses.course import PASS, Course, expected, words_of
from bertology.analyses.declaration import Analysis
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder, Randomisable
from bertology.errors import Refusal
from bertology.measures.work import Work
from bertology.recording.recorder import Policy, Progress, record, refuse_impossible
from bertology.recording.recording import Recording
from bertology.recording.sites import Site, resolve
from bertology.results.result import Result, observed, versions
from bertology.results.shapes import Picture


@dataclass(frozen=True)
class Subject:
    """What analyses are run on: an encoder and a corpus, or a recording made earlier; perhaps a second encoder."""

    corpus: Corpus | None = None
    encoder: Encoder | None = None
    recording: Recording | None = None
    against: Encoder | None = None
    policy: Policy = field(default_factory=Policy)
    store: Path | None = None
    randomise: bool = True


Announce = Callable[[str], None]


def run(
    analysis: Analysis,
    subject: Subject,
    options: Mapping[str, Any] | None = None,
    *,
    progress: Callable[[str], Progress] | None = None,
    notify: Announce | None = None,
) -> Result:
    """One analysis; see `run_all`."""
    return run_all([(analysis, options or {})], subject, progress=progress, notify=notify)[0]


def run_all(
    asked: Sequence[tuple[Analysis, Mapping[str, Any]]],
    subject: Subject,
    *,
    progress: Callable[[str], Progress] | None = None,
    notify: Announce | None = None,
    refused: dict[int, Refusal] | None = None,
    passes: list[str] | None = None,
    keep: bool = False,
    course: Course | None = None,
) -> list[Result]:
    """Each analysis's result, from as few forward passes as there are encoders to record.

    `progress` is given what is being recorded and returns the meter to call. Where `refused` is given, an analysis that
    does not fit the model or corpus is put there with its reason, by its place among those asked; the results are those
    of the others, in their order. `passes` is told of each pass that was made: not of what was recorded before.
    With `keep` each result is kept in the subject's store as soon as it is there, and not made again: a second run goes
    on where the first was stopped. `course` is told how far it is and how long each part takes.
    """
    course = course or Course()
    settled = [(analysis, analysis.settled(options)) for analysis, options in asked]
    refusals = {place: refusal for place, pair in enumerate(settled) if (refusal := _unfit(*pair, subject))}
    if refusals and refused is None:
        raise next(iter(refusals.values()))
    fitting = {place: pair for place, pair in enumerate(settled) if place not in refusals}
    recordings = _Recordings(list(fitting.values()), subject, progress, notify, passes, course)
    results: list[Result] = []
    for place, (analysis, options) in fitting.items():
        meter = Work(progress=progress if len(fitting) > 1 else None).meter(analysis.name)
        meter(0, 1)
        try:
            results.append(_kept(analysis, options, subject, recordings, keep))
        except Refusal as refusal:
            if refused is None:
                raise
            refusals[place] = refusal
        meter(1, 1)
    if refused is not None:
        refused |= refusals
    return results


def expected_of(asked: Sequence[tuple[Analysis, Mapping[str, Any]]], subject: Subject) -> float:
    """The seconds that `run_all` is expected to take, to compare with those of other runs."""
    words = words_of(subject.corpus)
    roles = {role for analysis, _ in asked for role in analysis.inputs} & {"recording", "randomised", "against"}
    return len(roles) * PASS * words + sum(expected(analysis.name, words) for analysis, _ in asked)


def _kept(
    analysis: Analysis, options: Mapping[str, Any], subject: Subject, recordings: _Recordings, keep: bool
) -> Result:
    """The result as an earlier run left it, or made now."""
    if not keep or subject.encoder is None or subject.corpus is None or subject.recording is not None:
        return _result(analysis, options, subject, recordings)
    about = {
        "result of": [analysis.name, analysis.version, dict(options)],
        "model": subject.encoder.fingerprint,
        "against": subject.against.fingerprint if subject.against is not None else None,
        "corpus": subject.corpus.fingerprint,
        "policy": subject.policy.addressed(),
        "randomise": subject.randomise,
        "versions": versions(),
    }
    made = recordings.work.kept(about, lambda: _result(analysis, options, subject, recordings).to_json())
    return Result.from_json(made)


class _Recordings:
    """The recordings by role, each made when first asked for and shared by all analyses."""

    def __init__(
        self,
        settled: Sequence[tuple[Analysis, Mapping[str, Any]]],
        subject: Subject,
        progress: Callable[[str], Progress] | None,
        notify: Announce | None,
        passes: list[str] | None,
        course: Course,
    ) -> None:
        self._passes = passes
        self.course = course
        self.words = words_of(subject.corpus)
        self._settled = settled
        self._subject = subject
        self._progress = progress
        self._notify = notify
        self._made: dict[str, Recording | None] = {}

    @property
    def work(self) -> Work:
        """Where long work of an analysis is kept, and who is told of it."""
        return Work(self._subject.store, self._progress)

    def __getitem__(self, role: str) -> Recording | None:
        if role not in self._made:
            self._made[role] = self._make(role)
        return self._made[role]

    def _sites(self, role: str) -> tuple[Site, ...]:
        named = [
            site for analysis, options in self._settled if role in analysis.inputs for site in analysis.sites(options)
        ]
        return resolve(named)

    def _beside(self, role: str) -> dict[str, Site]:
        """The paired sites of a role, by what its recording has them under."""
        partner = {"recording": self._subject.against, "randomised": self._subject.encoder}.get(role)
        paired = [site for analysis, _ in self._settled if role in analysis.inputs for site in analysis.paired]
        return {} if partner is None else {site.identity: site.beside(partner) for site in paired}

    def _make(self, role: str) -> Recording | None:
        beside = self._beside(role)
        found = self._recorded(role, resolve([*self._sites(role), *beside.values()]))
        if found is None or not beside:
            return found
        return replace(found, sites={**found.sites, **{name: found[site] for name, site in beside.items()}})

    def _recorded(self, role: str, sites: tuple[Site, ...]) -> Recording | None:
        if role == "recording" and self._subject.recording is not None:
            return self._subject.recording.with_derived(sites)
        encoder = self._encoder(role)
        if encoder is None or self._subject.corpus is None:
            return None
        name = f"{encoder.name} over {self._subject.corpus.name}"
        own = self._progress(f"recording {encoder.name}") if self._progress else None
        with self.course.part(name, PASS * self.words) as whole:

            def progress(done: int, total: int) -> None:
                to_do = total if sites else 0
                whole(done, to_do)
                if own is not None:
                    own(done, total)
                if self._passes is not None and to_do and not done:
                    self._passes.append(name)

            return record(
                encoder,
                self._subject.corpus,
                sites,
                policy=self._subject.policy,
                store=self._subject.store,
                progress=progress,
                notify=self._notify if sites else None,
            )

    def _encoder(self, role: str) -> Encoder | None:
        subject = self._subject
        if role == "randomised":
            twin = subject.encoder if subject.randomise else None
            return twin.randomised(seed=0) if isinstance(twin, Randomisable) else None
        return subject.against if role == "against" else subject.encoder


def _unfit(analysis: Analysis, options: Mapping[str, Any], subject: Subject) -> Refusal | None:
    """Why it cannot be run, if it cannot; such a one must not spoil the passes that it would share with others."""
    try:
        _refuse_missing(analysis, subject)
        if subject.encoder is not None and subject.recording is None:
            sites = resolve(analysis.sites(options), subject.encoder.outputs)
            refuse_impossible(subject.encoder, sites, subject.policy)
    except Refusal as refusal:
        return refusal
    return None


def _refuse_missing(analysis: Analysis, subject: Subject) -> None:
    corpus = subject.recording.corpus if subject.recording is not None else subject.corpus
    if corpus is not None and analysis.layers:
        corpus.require(*analysis.layers, purpose=analysis.name)
    if "against" in analysis.inputs and subject.against is None:
        raise Refusal(
            f"{analysis.name} compares two models and one was given", "a second model", "Give it with --against"
        )
    if "encoder" in analysis.inputs and "encoder" not in analysis.optional and subject.encoder is None:
        raise Refusal(
            f"{analysis.name} runs the model itself, and a recording cannot be run",
            "a model",
            "Give --model and --corpus instead of --recording",
        )


def _result(analysis: Analysis, options: Mapping[str, Any], subject: Subject, recordings: _Recordings) -> Result:
    with recordings.course.part(analysis.name, expected(analysis.name, recordings.words)):
        return _made(analysis, options, subject, recordings)


def _made(analysis: Analysis, options: Mapping[str, Any], subject: Subject, recordings: _Recordings) -> Result:
    given: dict[str, Any] = {}
    for role in analysis.inputs:
        match role:
            case "encoder":
                given[role] = subject.encoder
            case "work":
                given[role] = recordings.work
            case "corpus":
                given[role] = subject.recording.corpus if subject.recording else subject.corpus
            case _:
                given[role] = recordings[role]
    data = analysis.function(**given, **options)
    recorded = {role: value.summary() for role, value in given.items() if isinstance(value, Recording)}
    main = given.get("recording")
    corpus = given.get("corpus") or subject.corpus
    texts = len(main) if isinstance(main, Recording) else sum(len(item.inputs) for item in corpus or ())
    return Result(
        analysis=analysis.name,
        version=analysis.version,
        options=dict(options),
        inputs=recorded or ({"corpus": corpus.summary()} if corpus is not None else {}),
        n=texts if isinstance(data, Picture) else max(observed(data), default=0),
        data=data,
        provenance={"versions": versions(), "special_tokens": analysis.special, "cites": list(analysis.cites)},
    )
