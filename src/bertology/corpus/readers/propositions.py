"""Universal Propositions: PropBank predicates and their roles over a CoNLL-U treebank (akbik2015).

Column 11 holds the predicate's sense, and each predicate has a column after it, in order, that names the role of a
word towards it (V for the predicate itself; a second V, its particle, is counted and left out). The files give a role
to the *head* of its phrase only, so `arguments="head"` is the default: one word an argument, nothing inferred.
`arguments="subtree"` takes the unbroken run of words around it that hang below it in the tree, without the predicate
and what hangs below that; where the phrase has a gap, the rest of it is counted as left out. A sentence marked
`# propbank = no-up` was never annotated: it is counted and left out, for its empty columns say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from bertology.corpus.corpus import Item
from bertology.corpus.faults import Fault, parsed
from bertology.corpus.read import reader
from bertology.corpus.sentence import Frame, Sentence, Span
from bertology.corpus.sniff import first_lines
from bertology.corpus.source import Problems, blocks
from bertology.corpus.treebank import COLUMNS, Block, Lines, base_sentence, split_block, with_documents
from bertology.corpus.trees import subtree
from bertology.errors import unknown_name

BLANK = {"", "_"}
PREDICATE = {"V", "C-V"}
EXAMPLE = """\
1	Dogs	dog	NOUN	_	_	2	nsubj	_	_	_	ARG0
2	bark	bark	VERB	_	_	0	root	_	_	bark.01	V"""
Arguments = Literal["head", "subtree"]


def recognises(path: Path) -> bool:
    """Whether the first word line has more columns than CoNLL-U and a number first."""
    token = next((line for line in first_lines(path) if not line.startswith("#")), "").split("\t")
    return len(token) > COLUMNS and token[0].split("-")[0] == "1"


@reader(
    "propositions",
    about="Universal Propositions: semantic roles over CoNLL-U",
    example=EXAMPLE,
    recognises=recognises,
)
def read_propositions(path: Path, problems: Problems, *, arguments: Arguments = "head") -> Iterator[Item]:
    """One item a sentence with a frame for each predicate."""
    if arguments not in ("head", "subtree"):
        raise unknown_name("way to read arguments", arguments, ("head", "subtree"))
    units = with_documents(blocks(path, problems))
    for item in parsed(path, problems, units, partial(_item, path, problems, arguments)):
        if item.parts[0].frames is not None:
            yield item


def _item(path: Path, problems: Problems, arguments: Arguments, line: int, unit: tuple[str, Lines]) -> Item:
    document, lines = unit
    block = split_block(lines, columns=None)
    if any(name.startswith("global.columns") for name in block.comments):
        found = "The file names its columns with `# global.columns`, as version 2 of Universal Propositions does"
        raise Fault("other version", found, "version 1: sense, then a column a predicate", "Use the files of version 1")
    sentence = base_sentence(block, document)
    for token in block.empty:
        problems.note(path, token.line, "empty token")
    if block.comments.get("propbank") == "no-up":
        problems.note(path, line, "sentence without propositions")
    else:
        sentence = replace(sentence, frames=tuple(_frames(block, sentence, arguments, path, problems)))
    return Item((sentence,), id=sentence.id)


def _frames(block: Block, sentence: Sentence, arguments: Arguments, path: Path, problems: Problems) -> Iterator[Frame]:
    width = len(block.words[0].fields)
    predicates = [
        index for index, word in enumerate(block.words) if width > COLUMNS and word.fields[COLUMNS] not in BLANK
    ]
    if width < COLUMNS + 1 + len(predicates):
        found = f"{len(predicates)} predicates and {max(0, width - COLUMNS - 1)} columns of roles"
        raise Fault("wrong column count", found, "a column a predicate", "Check column 11 of this sentence")
    for column, predicate in enumerate(predicates, start=COLUMNS + 1):
        spans: list[Span] = []
        for index, word in enumerate(block.words):
            role = word.fields[column]
            if role in PREDICATE:
                if index != predicate:
                    problems.note(path, word.line, "further word of a predicate")
            elif role not in BLANK:
                span, whole = _argument(sentence, index, predicate, role, arguments)
                spans.append(span)
                if not whole:
                    problems.note(path, word.line, "argument with a gap cut to one run")
        yield Frame(predicate, block.words[predicate].fields[COLUMNS], tuple(spans))
    for column in range(COLUMNS + 1 + len(predicates), width):
        for word in block.words:
            if word.fields[column] not in BLANK:
                found = f"The role {word.fields[column]!r} belongs to no predicate"
                raise Fault("role without predicate", found, "a column a predicate", "Check column 11", line=word.line)


def _argument(sentence: Sentence, index: int, predicate: int, role: str, arguments: Arguments) -> tuple[Span, bool]:
    """The span of one argument, and whether it is all of its phrase."""
    if arguments == "head":
        return Span(index, index + 1, role), True
    if sentence.heads is None:
        raise Fault("missing head", "The sentence has no heads", "a tree for arguments=subtree", "Use arguments=head")
    below = subtree(sentence.heads, index, without=predicate)
    start = end = below.index(index)
    while start > 0 and below[start - 1] == below[start] - 1:
        start -= 1
    while end + 1 < len(below) and below[end + 1] == below[end] + 1:
        end += 1
    return Span(below[start], below[end] + 1, role), end - start + 1 == len(below)
