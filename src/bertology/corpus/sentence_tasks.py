"""Sentence tasks: labelled sentences made from any corpus, after SentEval's ten probing tasks (conneau2018).

One family of tasks is one file in `corpus/tasks/`. `tasks:NAME@SEED:CORPUS` names a task on a corpus (the seed may be
left out): `tasks:bigram_shift:english`. Every task

- uses each different source sentence once, so nothing of a sentence is on both sides of a split;
- keeps what must not be on both sides together (the lemma whose number is asked for): that is the item's `document`;
- has as many examples of every class in each split, within each stratum where the task names strata, and among the
  first sentences as among all;
- writes words with single blanks, whether a sentence was changed or not, so that spelling tells nothing;
- puts the split (train, validation, test) into the item's `source`, where SentEval's own files have it.

The same sentences in another order, and the same seed, give the same task.
"""

from __future__ import annotations

import hashlib
import importlib
import pkgutil
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random

from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.sentence import Sentence, sentence
from bertology.errors import Refusal, unknown_name

PREFIX = "tasks:"
ADDRESS = re.compile(r"tasks:(?P<name>[^@:]*)(@(?P<seed>[0-9]{1,9}))?:(?P<corpus>.+)")
SPLITS = {"train": 0.7, "validation": 0.1, "test": 0.2}
LEAST = 5
"""A class with fewer examples is left out."""


@dataclass(frozen=True)
class Candidate:
    """A labelled sentence that a task could use.

    No `group` is on both sides of a split. Classes are balanced within each `stratum`.
    """

    words: tuple[str, ...]
    label: str
    group: str = ""
    stratum: str = ""


MakeFunction = Callable[[Sequence[Sentence], Random], Iterable[Candidate]]


@dataclass(frozen=True)
class Task:
    """A way to label sentences: its name, what is asked, the annotation it needs, and the function that makes it."""

    name: str
    about: str
    layers: tuple[str, ...]
    function: MakeFunction


_tasks: dict[str, Task] = {}


def task(name: str, *, about: str, layers: tuple[str, ...] = ()) -> Callable[[MakeFunction], MakeFunction]:
    """Declare `function(sentences, random) -> candidates` as the task of that name."""

    def declare(function: MakeFunction) -> MakeFunction:
        _tasks[name] = Task(name, about, layers, function)
        return function

    return declare


@cache
def tasks() -> dict[str, Task]:
    """Every task by name."""
    import bertology.corpus.tasks as package

    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(sorted(_tasks.items()))


def parse(address: str) -> tuple[Task, int, str]:
    """The task, the seed and the name of the corpus that `tasks:NAME@SEED:CORPUS` names."""
    match = ADDRESS.fullmatch(address)
    if match is None:
        raise Refusal(
            f"{address!r} does not name a sentence task",
            "tasks:NAME:CORPUS, tasks:NAME@SEED:CORPUS",
            "Write it as, for example, tasks:bigram_shift:english",
        )
    if match["name"] not in tasks():
        raise unknown_name("sentence task", match["name"], tasks(), remedy="See `bertology list corpora`")
    return tasks()[match["name"]], int(match["seed"] or 0), match["corpus"]


def build(made: Task, corpus: Corpus, seed: int = 0) -> Corpus:
    """The task on the sentences of a corpus."""
    if made.layers:
        corpus.require(*made.layers, purpose=f"{PREFIX}{made.name}")
    needed = [part for part in corpus.sentences if all(getattr(part, layer) is not None for layer in made.layers)]
    random = Random(f"{made.name}{seed}")
    candidates = list(made.function(_in_own_order(needed, seed), random))
    kept = list(_divided(candidates, seed))
    if {split for _, split in kept} != set(SPLITS) or len(kept[0][0]) < 2:
        counts = Counter(candidate.label for candidate in candidates)
        raise Refusal(
            f"{corpus.name} gives too few examples for {PREFIX}{made.name} ({dict(counts.most_common(5))})",
            f"two classes or more with at least {LEAST} examples each, some for every split",
            "Use a larger corpus",
        )
    # Set after set, so that the first sentences alone are balanced too.
    ordered = [
        (candidate, split)
        for own, split in random.sample(kept, len(kept))
        for candidate in random.sample(own, len(own))
    ]
    items = [_item(made.name, number, *some) for number, some in enumerate(ordered, 1)]
    return Corpus(tuple(items), name=f"{PREFIX}{made.name}@{seed}:{corpus.name}", format="tasks")


def _item(name: str, number: int, candidate: Candidate, split: str) -> Item:
    made = sentence(candidate.words, id=f"{name}-{number}")
    made = replace(made, label=candidate.label, document=candidate.group)
    return Item((made,), label=candidate.label, id=made.id, source=split)


def shuffled_by_text(texts: Iterable[str], seed: int) -> list[str]:
    """Different texts in an order that depends on each of them and the seed alone."""
    return sorted(set(texts), key=lambda text: hashlib.sha256(f"{seed}\n{text}".encode()).digest())


def _in_own_order(sentences: Sequence[Sentence], seed: int) -> list[Sentence]:
    """Each different sentence once; of several that are annotated differently always the same one."""
    by_text: dict[str, Sentence] = {}
    for own in sentences:
        text = " ".join(own.words)
        by_text[text] = min(by_text[text], own, key=repr) if text in by_text else own
    return [by_text[text] for text in shuffled_by_text(by_text, seed) if text]


def _divided(candidates: Sequence[Candidate], seed: int) -> Iterator[tuple[tuple[Candidate, ...], str]]:
    """Sets of one candidate of every class, with their splits; classes that are too rare are left out."""
    totals = Counter(candidate.label for candidate in candidates)
    common = [candidate for candidate in candidates if totals[candidate.label] >= LEAST]
    if any(candidate.group for candidate in common):
        sizes = Counter(candidate.group for candidate in common)
        split_of = _shared_out([(group, sizes[group]) for group in shuffled_by_text(sizes, seed)])
        for split in SPLITS:
            own = [candidate for candidate in common if split_of[candidate.group] == split]
            yield from ((chosen, split) for chosen in _sets(own, {candidate.label for candidate in common}))
    else:
        sets = _sets(common, {candidate.label for candidate in common})
        split_of = _shared_out([(str(number), 1) for number in Random(seed).sample(range(len(sets)), len(sets))])
        yield from ((own, split_of[str(number)]) for number, own in enumerate(sets))


def _sets(candidates: Sequence[Candidate], classes: set[str]) -> list[tuple[Candidate, ...]]:
    """Sets of one candidate of every class from the same stratum."""
    cells: dict[str, dict[str, list[Candidate]]] = defaultdict(lambda: {label: [] for label in sorted(classes)})
    for candidate in candidates:
        cells[candidate.stratum][candidate.label].append(candidate)
    return [own for by_label in cells.values() for own in zip(*by_label.values(), strict=False)]


def _shared_out(sized: Sequence[tuple[str, int]]) -> dict[str, str]:
    """The split of each name, in order, so that the sizes add up to the splits' shares as nearly as they can."""
    whole, filled = sum(size for _, size in sized), dict.fromkeys(SPLITS, 0)
    found: dict[str, str] = {}
    for name, size in sized:
        found[name] = max(SPLITS, key=lambda split: SPLITS[split] * whole - filled[split])
        filled[found[name]] += size
    return found
