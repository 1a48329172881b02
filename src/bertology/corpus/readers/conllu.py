"""CoNLL-U: Universal Dependencies treebanks, with the annotations of the MISC column (conllu).

In addition to the ten columns: `# newdoc` (document), `# text` (offsets; without it SpaceAfter=No determines the
spacing), and in MISC `NER=B-PER` (entities), `Entity=(e1-person` (mentions, label = cluster; corefud) and `Sense=`
(senses). Words are syntactic words; the words of a multi-word token share its characters if they do not spell it
(French du = de + le). Empty nodes are counted and ignored; enhanced dependencies are ignored. With `unit=document` an
example is a document rather than a sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from bertology.corpus.bio import decode
from bertology.corpus.coreference_brackets import BracketCell, read_mentions
from bertology.corpus.documents import CorpusUnit, group_documents
from bertology.corpus.example import Example
from bertology.corpus.read import first_lines, reader
from bertology.corpus.sentence import ROOT, CharacterOffsets, Sentence, join_words, locate_words
from bertology.corpus.text_files import NumberedLines, ParseError, ParseErrorHandler, line_groups, parse_all, parse_int

EXAMPLE = """\
# sent_id = 1
# text = Dogs bark.
1	Dogs	dog	NOUN	NNS	Number=Plur	2	nsubj	_	_
2	bark	bark	VERB	VBP	_	0	root	_	SpaceAfter=No
3	.	.	PUNCT	.	_	2	punct	_	_"""


def matches(path: Path) -> bool:
    """Whether the first word line has ten columns and begins with a number."""
    columns = next((line for line in first_lines(path) if not line.startswith("#")), "").split("\t")
    return len(columns) == N_COLUMNS and columns[0].split("-")[0].isdecimal()


@reader(
    "conllu",
    description="Universal Dependencies: pos, lemmas, morphology, trees; entities, coreference and senses in MISC",
    example=EXAMPLE,
    suffixes=(".conllu", ".conllup"),
    matches=matches,
)
def read_conllu(path: Path, errors: ParseErrorHandler, *, unit: CorpusUnit = "sentence") -> Iterator[Example]:
    """Yield one example per sentence or document."""
    yield from group_documents(conllu_examples(path, errors, line_groups(path, errors)), unit)


def conllu_examples(path: Path, errors: ParseErrorHandler, groups: Iterable[NumberedLines]) -> Iterator[Example]:
    """Yield one example per sentence; `path` is the location that messages name."""
    parse = partial(_to_example, path, errors, _ClusterIdParser())
    return parse_all(path, errors, number_documents(groups), parse)


class _ClusterIdParser:
    """Extracts the cluster id from CorefUD attributes, in the order of the comment `# global.Entity` of the file."""

    id_index = 0

    def configure(self, conllu_sentence: ConlluSentence) -> None:
        names = conllu_sentence.comments.get("global.Entity", "").split("-")
        self.id_index = names.index("eid") if "eid" in names else self.id_index

    def __call__(self, attributes: str) -> str:
        fields = attributes.split("-")
        return fields[self.id_index] if self.id_index < len(fields) else fields[0]


def _to_example(
    path: Path, errors: ParseErrorHandler, cluster_ids: _ClusterIdParser, line: int, unit: tuple[str, NumberedLines]
) -> Example:
    document, lines = unit
    conllu_sentence = parse_conllu_sentence(lines)
    cluster_ids.configure(conllu_sentence)
    sentence = to_sentence(conllu_sentence, document)
    if any("=" in node.columns[MISC] for node in (*conllu_sentence.words, *conllu_sentence.empty_nodes)):
        sentence = _add_misc_annotations(sentence, conllu_sentence, cluster_ids, path, errors)
    for node in conllu_sentence.empty_nodes:
        errors.count(path, node.line_number, "empty tokens ignored")
    return Example((sentence,), id=sentence.id)


def _add_misc_annotations(
    sentence: Sentence,
    conllu_sentence: ConlluSentence,
    cluster_ids: _ClusterIdParser,
    path: Path,
    errors: ParseErrorHandler,
) -> Sentence:
    attributes = [_attributes(word) for word in conllu_sentence.words]
    if any("NER" in values for values in attributes):
        tags = [values.get("NER", "O") for values in attributes]
        sentence = replace(sentence, entities=decode(tags, lines=conllu_sentence.line_numbers))
    if any("Sense" in values for values in attributes):
        sentence = replace(sentence, senses=tuple(values.get("Sense") for values in attributes))
    cells = _entity_cells(conllu_sentence, attributes)
    if cells:
        mentions = read_mentions(cells, cluster_ids)
        sentence = replace(sentence, mentions=mentions.spans)
        for reason, line in mentions.skipped:
            errors.count(path, line, reason)
    return sentence


def _entity_cells(conllu_sentence: ConlluSentence, attributes: list[dict[str, str]]) -> list[BracketCell]:
    """Return the Entity attributes of words and empty nodes in the order of the file."""
    cells = [
        BracketCell(index, index + 1, word.line_number, values["Entity"])
        for index, (word, values) in enumerate(zip(conllu_sentence.words, attributes, strict=True))
        if "Entity" in values
    ]
    for node in conllu_sentence.empty_nodes:
        values = _attributes(node)
        if "Entity" in values:
            cells.append(BracketCell(node.words_before, node.words_before, node.line_number, values["Entity"]))
    return sorted(cells, key=lambda cell: cell.line)


def _attributes(conllu_line: ConlluLine) -> dict[str, str]:
    if conllu_line.columns[MISC] == "_":
        return {}
    values: dict[str, str] = {}
    for attribute in conllu_line.columns[MISC].split("|"):
        name, _, value = attribute.partition("=")
        if name in {"NER", "Entity", "Sense"} and not value:
            problem, line = f"{name} has no value", conllu_line.line_number
            raise ParseError("missing annotation", problem, f"{name}=value", "Fill it in", line=line)
        values[name] = value
    return values


FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL, _DEPS, MISC = range(1, 10)
N_COLUMNS = 10
HEAD_REMEDY = "Correct the HEAD column"


@dataclass(frozen=True, slots=True)
class ConlluLine:
    """The columns of a line and its number."""

    line_number: int
    columns: list[str]


@dataclass(frozen=True, slots=True)
class MultiwordToken(ConlluLine):
    """A multi-word token over the words `first` to `last` (from 0, inclusive)."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class EmptyNode(ConlluLine):
    """An empty node and the number of words before it."""

    words_before: int


@dataclass(slots=True)
class ConlluSentence:
    """The lines of a sentence by type."""

    line_number: int
    comments: dict[str, str] = field(default_factory=dict[str, str])
    words: list[ConlluLine] = field(default_factory=list[ConlluLine])
    multiword_tokens: list[MultiwordToken] = field(default_factory=list[MultiwordToken])
    empty_nodes: list[EmptyNode] = field(default_factory=list[EmptyNode])

    def column(self, index: int) -> tuple[str, ...] | None:
        """Return a column over the words, or None if it is empty for all of them."""
        values = tuple(word.columns[index] for word in self.words)
        return values if any(value not in {"_", ""} for value in values) else None

    @property
    def line_numbers(self) -> list[int]:
        """The line number of each word."""
        return [word.line_number for word in self.words]


def number_documents(groups: Iterable[NumberedLines]) -> Iterator[tuple[int, tuple[str, NumberedLines]]]:
    """Yield the first line number of each sentence, its document (from the last `# newdoc` comment) and its lines."""
    document, count = "", 0
    for group in groups:
        for _, line in group:
            if line.startswith("# newdoc"):
                count += 1
                document = line.partition("=")[2].strip() or f"document {count}"
        yield group[0][0], (document, group)


def parse_conllu_sentence(lines: NumberedLines, *, n_columns: int | None = N_COLUMNS) -> ConlluSentence:
    """Sort the lines of a sentence by type and check their ids.

    If `n_columns` is None, all lines must have as many columns as the first, and at least ten.
    """
    conllu_sentence = ConlluSentence(lines[0][0])
    for number, line in lines:
        if line.startswith("#"):
            name, _, value = line[1:].partition("=")
            conllu_sentence.comments[name.strip()] = value.strip()
            continue
        columns = line.split("\t")
        n_columns = n_columns or max(len(columns), N_COLUMNS)
        if len(columns) != n_columns:
            problem = f"The line has {len(columns)} tab-separated columns"
            remedy = "Separate columns by single tabs"
            raise ParseError("wrong column count", problem, f"{n_columns} columns", remedy, line=number)
        _add_line(conllu_sentence, number, columns)
    if not conllu_sentence.words:
        raise ParseError("no words", "The sentence has no word lines", "at least one word", "Remove the sentence")
    return conllu_sentence


def to_sentence(conllu_sentence: ConlluSentence, document: str = "") -> Sentence:
    """Return the sentence with the annotations of the ten columns; enhanced dependencies are ignored."""
    words = tuple(word.columns[FORM] for word in conllu_sentence.words)
    text, offsets = _text_and_offsets(conllu_sentence, words)
    return Sentence(
        words=words,
        text=text,
        offsets=offsets,
        id=conllu_sentence.comments.get("sent_id", ""),
        document=document,
        lemmas=conllu_sentence.column(LEMMA),
        pos=conllu_sentence.column(UPOS),
        xpos=conllu_sentence.column(XPOS),
        morphology=conllu_sentence.column(FEATS),
        governors=_governors(conllu_sentence),
        relations=conllu_sentence.column(DEPREL),
    )


def check_tree(governors: Sequence[int], lines: Sequence[int]) -> None:
    """Raise `ParseError` unless the governors (from 0, or `ROOT`) form a tree; `lines` are the words' line numbers."""
    for governor, line in zip(governors, lines, strict=True):
        if not ROOT <= governor < len(governors):
            problem = f"The governor {governor + 1} is outside the sentence of {len(governors)} words"
            expected = f"a number from 0 to {len(governors)}"
            raise ParseError("governor out of range", problem, expected, HEAD_REMEDY, line=line)
    roots = [word for word, governor in enumerate(governors) if governor == ROOT]
    expected = "exactly one root per sentence"
    if not roots:
        raise ParseError("no root", "No word has the governor 0", expected, HEAD_REMEDY, line=lines[0])
    cycle = _find_cycle(governors)
    if cycle is not None:
        problem = f"Word {cycle + 1} is its own ancestor"
        raise ParseError("cycle", problem, "a tree", HEAD_REMEDY, line=lines[cycle])
    if len(roots) > 1:
        problem = f"{len(roots)} words have the governor 0"
        raise ParseError("several roots", problem, expected, HEAD_REMEDY, line=lines[roots[1]])


def _add_line(conllu_sentence: ConlluSentence, line_number: int, columns: list[str]) -> None:
    identifier, n_words = columns[0], len(conllu_sentence.words)
    if identifier == str(n_words + 1):
        if not columns[FORM].strip():
            problem = "The second column (FORM) is empty"
            raise ParseError("empty word", problem, "a word form", "Fill it in", line=line_number)
        conllu_sentence.words.append(ConlluLine(line_number, columns))
    elif "-" in identifier:
        first, last = (parse_int(part) for part in identifier.split("-", 1))
        previous = conllu_sentence.multiword_tokens[-1].last if conllu_sentence.multiword_tokens else -1
        if first != n_words + 1 or last is None or last <= n_words or n_words <= previous:
            raise _id_error(identifier, f"a range that begins with {n_words + 1}", line_number)
        conllu_sentence.multiword_tokens.append(MultiwordToken(line_number, columns, n_words, last - 1))
    elif "." in identifier:
        before, rank = (parse_int(part) for part in identifier.split(".", 1))
        if before != n_words or not rank:
            raise _id_error(identifier, f"an empty node after word {n_words}", line_number)
        conllu_sentence.empty_nodes.append(EmptyNode(line_number, columns, n_words))
    else:
        raise _id_error(identifier, str(n_words + 1), line_number)


def _id_error(identifier: str, expected: str, line: int) -> ParseError:
    number = parse_int(identifier.split("-")[0].split(".")[0])
    return ParseError(
        "id is not a number" if number is None else "id out of order",
        f"The id is {identifier!r}",
        f"{expected} (ids count from 1 without gaps or repetitions)",
        "Correct the ids",
        line=line,
    )


def _governors(conllu_sentence: ConlluSentence) -> tuple[int, ...] | None:
    column = conllu_sentence.column(HEAD)
    if column is None:
        return None
    numbers = [parse_int(text) for text in column]
    for number, text, word in zip(numbers, column, conllu_sentence.words, strict=True):
        if number is None:
            reason = "missing governor" if text in {"_", ""} else "governor is not a number"
            expected = "0 for the root, or the id of a word"
            raise ParseError(reason, f"The governor is {text!r}", expected, HEAD_REMEDY, line=word.line_number)
    governors = tuple(ROOT if not number else number - 1 for number in numbers)
    check_tree(governors, conllu_sentence.line_numbers)
    return governors


def _find_cycle(governors: Sequence[int]) -> int | None:
    """Return a word on a cycle, or None; each word is visited once."""
    visited = [False] * len(governors)
    for start in range(len(governors)):
        path: set[int] = set()
        word = start
        while word != ROOT and not visited[word]:
            if word in path:
                return word
            path.add(word)
            word = governors[word]
        for word in path:
            visited[word] = True
    return None


def _text_and_offsets(conllu_sentence: ConlluSentence, words: tuple[str, ...]) -> tuple[str, CharacterOffsets]:
    """Return the text of the sentence and the offsets of each word."""
    tokens = _surface_tokens(conllu_sentence)
    forms = [token.columns[FORM] for token, _, _ in tokens]
    if "text" in conllu_sentence.comments:
        text = conllu_sentence.comments["text"]
        token_offsets = locate_words(forms, text)
        if token_offsets is None:
            raise ParseError(
                "words do not match the text",
                f"The words do not match the comment `# text = {text[:60]}`",
                "the words of the text in order",
                "Correct the words or the comment",
                line=conllu_sentence.line_number,
            )
    else:
        space_after = ["SpaceAfter=No" not in token.columns[MISC].split("|") for token, _, _ in tokens]
        text, token_offsets = join_words(forms, space_after)
    offsets: list[tuple[int, int]] = []
    for (_, first, last), span in zip(tokens, token_offsets, strict=True):
        offsets.extend(_word_offsets(words[first : last + 1], text, span))
    return text, tuple(offsets)


def _surface_tokens(conllu_sentence: ConlluSentence) -> list[tuple[ConlluLine, int, int]]:
    """Return multi-word tokens and the words outside them, each with its first and last word."""
    n_words = len(conllu_sentence.words)
    if conllu_sentence.multiword_tokens and conllu_sentence.multiword_tokens[-1].last >= n_words:
        token = conllu_sentence.multiword_tokens[-1]
        problem, expected = f"The id is {token.columns[0]!r}", f"a range up to {n_words}"
        raise ParseError("id out of order", problem, expected, "Correct the id", line=token.line_number)
    by_first_word = {token.first: token for token in conllu_sentence.multiword_tokens}
    tokens: list[tuple[ConlluLine, int, int]] = []
    index = 0
    while index < n_words:
        token = by_first_word.get(index)
        last = token.last if token else index
        tokens.append((token or conllu_sentence.words[index], index, last))
        index = last + 1
    return tokens


def _word_offsets(words: tuple[str, ...], text: str, token_offsets: tuple[int, int]) -> list[tuple[int, int]]:
    """Divide the characters of a token among its words; if the words do not spell it, each word gets all of them."""
    start, end = token_offsets
    if len(words) == 1:
        return [token_offsets]
    if len("".join(words)) != end - start or "".join(words).casefold() != text[start:end].casefold():
        return [token_offsets] * len(words)
    offsets: list[tuple[int, int]] = []
    for word in words:
        offsets.append((start, start + len(word)))
        start += len(word)
    return offsets
