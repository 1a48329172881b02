"""Universal Propositions: PropBank predicates and roles on top of a CoNLL-U treebank (akbik2015).

Column 11 contains the sense of a predicate; each predicate, in order, has a further column with the roles of words
towards it (V for the predicate itself; a second V, its particle, is counted and ignored). The files annotate only the
top word of an argument, so the default `arguments=word` makes an argument of this word. `arguments=subtree`
extends it to the contiguous words around it in its subtree, without the predicate and its subtree; the rest of a
discontinuous phrase is counted and dropped. Sentences marked `# propbank = no-up` were never annotated; they are
counted and skipped, because their empty columns are not annotations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from bertology.corpus.example import Example
from bertology.corpus.read import first_lines, reader
from bertology.corpus.readers.conllu import (
    N_COLUMNS,
    ConlluSentence,
    number_documents,
    parse_conllu_sentence,
    to_sentence,
)
from bertology.corpus.sentence import SemanticFrame, Sentence, Span, subtree
from bertology.corpus.text_files import NumberedLines, ParseError, ParseErrorHandler, line_groups, parse_all

BLANK = {"", "_"}
PREDICATE_ROLES = {"V", "C-V"}
EXAMPLE = """\
1	Dogs	dog	NOUN	_	_	2	nsubj	_	_	_	ARG0
2	bark	bark	VERB	_	_	0	root	_	_	bark.01	V"""
ArgumentExtent = Literal["word", "subtree"]


def matches(path: Path) -> bool:
    """Whether the first word line has more columns than CoNLL-U and begins with 1."""
    columns = next((line for line in first_lines(path) if not line.startswith("#")), "").split("\t")
    return len(columns) > N_COLUMNS and columns[0].split("-")[0] == "1"


@reader(
    "universal_propositions",
    description="Universal Propositions: semantic roles on top of CoNLL-U",
    example=EXAMPLE,
    suffixes=(".conllu", ".conllup"),
    matches=matches,
)
def read_universal_propositions(
    path: Path, errors: ParseErrorHandler, *, arguments: ArgumentExtent = "word"
) -> Iterator[Example]:
    """Yield one example per sentence, with a frame for each predicate."""
    sentences = number_documents(line_groups(path, errors))
    for example in parse_all(path, errors, sentences, partial(_to_example, path, errors, arguments)):
        if example.segments[0].frames is not None:
            yield example


def _to_example(
    path: Path, errors: ParseErrorHandler, arguments: ArgumentExtent, line: int, unit: tuple[str, NumberedLines]
) -> Example:
    document, lines = unit
    conllu_sentence = parse_conllu_sentence(lines, n_columns=None)
    if any(name.startswith("global.columns") for name in conllu_sentence.comments):
        problem = "The file names its columns with `# global.columns`, as version 2 of Universal Propositions does"
        expected = "version 1: the sense, then one column per predicate"
        raise ParseError("other version", problem, expected, "Use the files of version 1")
    sentence = to_sentence(conllu_sentence, document)
    for node in conllu_sentence.empty_nodes:
        errors.count(path, node.line_number, "empty tokens ignored")
    if conllu_sentence.comments.get("propbank") == "no-up":
        errors.count(path, line, "sentences without propositions skipped")
    else:
        sentence = replace(sentence, frames=tuple(_frames(conllu_sentence, sentence, arguments, path, errors)))
    return Example((sentence,), id=sentence.id)


def _frames(
    conllu_sentence: ConlluSentence,
    sentence: Sentence,
    arguments: ArgumentExtent,
    path: Path,
    errors: ParseErrorHandler,
) -> Iterator[SemanticFrame]:
    words = conllu_sentence.words
    width = len(words[0].columns)
    predicates = [
        index for index, word in enumerate(words) if width > N_COLUMNS and word.columns[N_COLUMNS] not in BLANK
    ]
    expected = "one column per predicate"
    if width < N_COLUMNS + 1 + len(predicates):
        problem = f"{len(predicates)} predicates and {max(0, width - N_COLUMNS - 1)} columns of roles"
        raise ParseError("wrong column count", problem, expected, "Check column 11 of this sentence")
    for column, predicate in enumerate(predicates, start=N_COLUMNS + 1):
        spans: list[Span] = []
        for index, word in enumerate(words):
            role = word.columns[column]
            if role in PREDICATE_ROLES:
                if index != predicate:
                    errors.count(path, word.line_number, "additional words of predicates ignored")
            elif role not in BLANK:
                span, is_complete = _argument(sentence, index, predicate, role, arguments)
                spans.append(span)
                if not is_complete:
                    errors.count(path, word.line_number, "discontinuous arguments reduced to one span")
        yield SemanticFrame(predicate, words[predicate].columns[N_COLUMNS], tuple(spans))
    for column in range(N_COLUMNS + 1 + len(predicates), width):
        for word in words:
            if word.columns[column] not in BLANK:
                problem, line = f"The role {word.columns[column]!r} has no predicate", word.line_number
                raise ParseError("role without predicate", problem, expected, "Check column 11", line=line)


def _argument(
    sentence: Sentence, index: int, predicate: int, role: str, arguments: ArgumentExtent
) -> tuple[Span, bool]:
    """Return the span of an argument, and whether it covers its whole phrase."""
    if arguments == "word":
        return Span(index, index + 1, role), True
    if sentence.governors is None:
        problem, expected = "The sentence has no dependency tree", "a tree for arguments=subtree"
        raise ParseError("missing governor", problem, expected, "Use --format-option arguments=word")
    phrase = subtree(sentence.governors, index, exclude=predicate)
    start = end = phrase.index(index)
    while start > 0 and phrase[start - 1] == phrase[start] - 1:
        start -= 1
    while end + 1 < len(phrase) and phrase[end + 1] == phrase[end] + 1:
        end += 1
    return Span(phrase[start], phrase[end] + 1, role), end - start + 1 == len(phrase)
