"""Derive labelled sentences from any corpus, after the ten probing tasks of SentEval (conneau2018).

A family of tasks is a module in `corpus/tasks/`. `tasks:NAME@SEED:CORPUS` names a task on a corpus, for example
`tasks:bigram_shift:english`; the seed is optional. Every task

- uses each distinct sentence once, so that no sentence is in two splits;
- keeps groups, such as the lemma whose number is predicted, in one split; the group is the `document` of the sentence;
- has the same number of examples of every class in each split, within each stratum if the task has strata, and among
  the first examples as well as among all;
- separates words by single spaces, so that spacing does not reveal whether a sentence was changed;
- stores the split (train, validation, test) as the `source` of the example, as the reader of SentEval's files does.

The result depends on the set of sentences and the seed, not on the order of the sentences.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random

from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.hashing import shuffle_by_hash
from bertology.corpus.registration import import_modules
from bertology.corpus.sentence import Sentence, sentence_from_words
from bertology.errors import Refusal, unknown_name

TASKS_PREFIX = "tasks:"
ADDRESS = re.compile(r"tasks:(?P<name>[^@:]*)(@(?P<seed>[0-9]{1,9}))?:(?P<corpus>.+)")
SPLITS = {"train": 0.7, "validation": 0.1, "test": 0.2}
MIN_EXAMPLES_PER_CLASS = 5
"""Classes with fewer examples are dropped."""


@dataclass(frozen=True)
class LabelledCandidate:
    """A labelled sentence that a task can use.

    No `group` is in two splits. Classes are balanced within each `stratum`.
    """

    words: tuple[str, ...]
    label: str
    group: str = ""
    stratum: str = ""


CandidateFunction = Callable[[Sequence[Sentence], Random], Iterable[LabelledCandidate]]


@dataclass(frozen=True)
class ProbingTask:
    """A probing task: its name, description, required annotations, and the function that labels sentences."""

    name: str
    description: str
    annotations: tuple[str, ...]
    function: CandidateFunction


_probing_tasks: dict[str, ProbingTask] = {}


def probing_task(
    name: str, *, description: str, annotations: tuple[str, ...] = ()
) -> Callable[[CandidateFunction], CandidateFunction]:
    """Register `function(sentences, rng)`, which returns candidates, as a probing task."""

    def register(function: CandidateFunction) -> CandidateFunction:
        _probing_tasks[name] = ProbingTask(name, description, annotations, function)
        return function

    return register


@cache
def probing_tasks() -> dict[str, ProbingTask]:
    """Return all probing tasks by name."""
    import_modules("bertology.corpus.tasks")
    return dict(sorted(_probing_tasks.items()))


def parse_task_address(address: str) -> tuple[ProbingTask, int, str]:
    """Return the task, the seed and the name of the corpus of `tasks:NAME@SEED:CORPUS`."""
    match = ADDRESS.fullmatch(address)
    if match is None:
        raise Refusal(
            f"{address!r} is not the name of a probing task",
            "tasks:NAME:CORPUS or tasks:NAME@SEED:CORPUS",
            "Write for example tasks:bigram_shift:english",
        )
    if match["name"] not in probing_tasks():
        raise unknown_name("probing task", match["name"], probing_tasks(), remedy="See `bertology list corpora`")
    return probing_tasks()[match["name"]], int(match["seed"] or 0), match["corpus"]


def build_task_corpus(task: ProbingTask, corpus: Corpus, seed: int = 0) -> Corpus:
    """Derive the examples of a task from the sentences of a corpus."""
    if task.annotations:
        corpus.require_annotations(*task.annotations, analysis_name=f"{TASKS_PREFIX}{task.name}")
    annotated = [s for s in corpus.sentences if all(getattr(s, name) is not None for name in task.annotations)]
    rng = Random(f"{task.name}{seed}")
    candidates = list(task.function(_deduplicate_and_shuffle(annotated, seed), rng))
    sets = list(_split_candidates(candidates, seed))
    if {split for _, split in sets} != set(SPLITS) or len(sets[0][0]) < 2:
        counts = Counter(candidate.label for candidate in candidates)
        raise Refusal(
            f"{corpus.name} has too few examples for {TASKS_PREFIX}{task.name} ({dict(counts.most_common(5))})",
            f"at least two classes with {MIN_EXAMPLES_PER_CLASS} examples each, enough for all splits",
            "Use a larger corpus",
        )
    # Examples are ordered set by set, so that the first ones are balanced too.
    ordered = [
        (candidate, split)
        for candidate_set, split in rng.sample(sets, len(sets))
        for candidate in rng.sample(candidate_set, len(candidate_set))
    ]
    examples = [
        _to_example(task.name, number, candidate, split) for number, (candidate, split) in enumerate(ordered, start=1)
    ]
    return Corpus(tuple(examples), name=f"{TASKS_PREFIX}{task.name}@{seed}:{corpus.name}", format="tasks")


def _to_example(name: str, number: int, candidate: LabelledCandidate, split: str) -> Example:
    sentence = sentence_from_words(candidate.words, id=f"{name}-{number}")
    sentence = replace(sentence, label=candidate.label, document=candidate.group)
    return Example((sentence,), label=candidate.label, id=sentence.id, source=split)


def _deduplicate_and_shuffle(sentences: Sequence[Sentence], seed: int) -> list[Sentence]:
    """Return each distinct sentence once; of differently annotated copies always the same one."""
    by_text: dict[str, Sentence] = {}
    for sentence in sentences:
        text = " ".join(sentence.words)
        by_text[text] = min(by_text[text], sentence, key=repr) if text in by_text else sentence
    return [by_text[text] for text in shuffle_by_hash(by_text, seed) if text]


def _split_candidates(
    candidates: Sequence[LabelledCandidate], seed: int
) -> Iterator[tuple[tuple[LabelledCandidate, ...], str]]:
    """Yield sets of one candidate of every class, with their splits, without classes that are too rare."""
    totals = Counter(candidate.label for candidate in candidates)
    frequent = [candidate for candidate in candidates if totals[candidate.label] >= MIN_EXAMPLES_PER_CLASS]
    classes = {candidate.label for candidate in frequent}
    if any(candidate.group for candidate in frequent):
        sizes = Counter(candidate.group for candidate in frequent)
        splits = _allocate_splits([(group, sizes[group]) for group in shuffle_by_hash(sizes, seed)])
        for split in SPLITS:
            members = [candidate for candidate in frequent if splits[candidate.group] == split]
            yield from ((candidate_set, split) for candidate_set in _balanced_sets(members, classes))
    else:
        sets = _balanced_sets(frequent, classes)
        splits = _allocate_splits([(str(number), 1) for number in Random(seed).sample(range(len(sets)), len(sets))])
        yield from ((candidate_set, splits[str(number)]) for number, candidate_set in enumerate(sets))


def _balanced_sets(candidates: Sequence[LabelledCandidate], classes: set[str]) -> list[tuple[LabelledCandidate, ...]]:
    """Return sets of one candidate of every class from the same stratum."""
    strata: dict[str, dict[str, list[LabelledCandidate]]] = defaultdict(
        lambda: {label: [] for label in sorted(classes)}
    )
    for candidate in candidates:
        strata[candidate.stratum][candidate.label].append(candidate)
    return [candidate_set for by_label in strata.values() for candidate_set in zip(*by_label.values(), strict=False)]


def _allocate_splits(group_sizes: Sequence[tuple[str, int]]) -> dict[str, str]:
    """Assign groups to splits in order, so that the sizes of splits approach their fractions."""
    total, filled = sum(size for _, size in group_sizes), dict.fromkeys(SPLITS, 0)
    splits: dict[str, str] = {}
    for name, size in group_sizes:
        splits[name] = max(SPLITS, key=lambda split: SPLITS[split] * total - filled[split])
        filled[splits[name]] += size
    return splits
