"""Dependency arcs over the tokens of a view: those a treebank has, those a structural probe found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bertology.corpus.corpus import Input
from bertology.corpus.sentence import ROOT
from bertology.results.result import Result
from bertology.results.shapes import ArcDiagram, Arcs
from bertology.views.payload import Arc, Tree

GOLD = "gold"


def gold_tree(input_: Input) -> Tree | None:
    """The annotated heads of all parts that have them; None where none has."""
    arcs: list[Arc] = []
    start = 0
    for part in input_.parts:
        relations = part.relations or ("",) * len(part)
        for word, (head, relation) in enumerate(zip(part.heads or (), relations, strict=False)):
            if head != ROOT:
                arcs.append(Arc(start=start + word, end=start + head, label=relation))
        start += len(part)
    about = "as annotated: from each word to its head"
    return Tree(name=GOLD, about=about, directed=True, arcs=arcs) if arcs else None


def found_trees(results: Sequence[Result], input_: Input) -> Iterator[Tree]:
    """The arcs that analyses found over these very words."""
    for result in results:
        if not isinstance(result.data, Arcs):
            continue
        for diagram in result.data.sentences:
            if diagram.words == input_.words:
                arcs = [Arc(start=arc.start, end=arc.end, label=arc.label) for arc in diagram.arcs]
                about = f"found by {result.analysis}, without direction{_agreement(diagram)}"
                yield Tree(name=result.analysis, about=about, directed=False, arcs=arcs)


def _agreement(diagram: ArcDiagram) -> str:
    if not diagram.gold:
        return ""
    gold = {frozenset((arc.start, arc.end)) for arc in diagram.gold}
    right = sum(frozenset((arc.start, arc.end)) in gold for arc in diagram.arcs)
    return f": {right} of {len(diagram.arcs)} edges are among the {len(gold)} gold ones"
