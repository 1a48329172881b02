"""Dependency arcs for a view: gold arcs of an annotated sentence, and arcs predicted by a structural probe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bertology.corpus.example import TextInput
from bertology.corpus.sentence import ROOT
from bertology.results.illustrations import ArcDiagram, Arcs
from bertology.results.result import Result
from bertology.views.payload import DependencyArc, DependencyTree

GOLD = "gold"


def gold_tree(input_: TextInput) -> DependencyTree | None:
    """The annotated governors of all segments; None if no segment has any."""
    arcs: list[DependencyArc] = []
    first_word = 0
    for segment in input_.segments:
        relations = segment.relations or ("",) * len(segment)
        for word, (governor, relation) in enumerate(zip(segment.governors or (), relations, strict=False)):
            if governor != ROOT:
                arcs.append(DependencyArc(start=first_word + word, end=first_word + governor, label=relation))
        first_word += len(segment)
    description = "as annotated, from each word to its governor"
    return DependencyTree(name=GOLD, description=description, directed=True, arcs=arcs) if arcs else None


def predicted_trees(results: Sequence[Result], input_: TextInput) -> Iterator[DependencyTree]:
    """The arcs in the results over exactly the words of the input."""
    for result in results:
        if not isinstance(result.data, Arcs):
            continue
        for diagram in result.data.sentences:
            if diagram.words == input_.words:
                arcs = [DependencyArc(start=arc.start, end=arc.end, label=arc.label) for arc in diagram.arcs]
                description = f"predicted by {result.analysis}, undirected{_agreement(diagram)}"
                yield DependencyTree(name=result.analysis, description=description, directed=False, arcs=arcs)


def _agreement(diagram: ArcDiagram) -> str:
    if not diagram.gold:
        return ""
    gold = {frozenset((arc.start, arc.end)) for arc in diagram.gold}
    n_correct = sum(frozenset((arc.start, arc.end)) in gold for arc in diagram.arcs)
    return f": {n_correct} of {len(diagram.arcs)} edges are among the {len(gold)} gold edges"
