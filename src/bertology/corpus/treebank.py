"""The lines of one CoNLL-U sentence as words, multi-word tokens and empty nodes, and the layers of its ten columns.

Used by every format built on CoNLL-U. The tenth column's own layers and further columns are their readers' matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from bertology.corpus.faults import Fault
from bertology.corpus.sentence import ROOT, Offsets, Sentence, locate, spell
from bertology.corpus.trees import check_tree
from bertology.corpus.whole_numbers import whole_number

FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL, DEPS, MISC = range(1, 10)
COLUMNS = 10
Lines = list[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Token:
    """One line of a sentence: its number and its columns."""

    line: int
    fields: list[str]


@dataclass(frozen=True, slots=True)
class Surface(Token):
    """A multi-word token over the words `first` to `last` (from 0, inclusive)."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Empty(Token):
    """An empty node and how many words stand before it."""

    before: int


@dataclass(slots=True)
class Block:
    """One sentence of a file, its lines sorted by what they are."""

    line: int
    comments: dict[str, str] = field(default_factory=dict[str, str])
    words: list[Token] = field(default_factory=list[Token])
    surfaces: list[Surface] = field(default_factory=list[Surface])
    empty: list[Empty] = field(default_factory=list[Empty])

    def column(self, index: int) -> tuple[str, ...] | None:
        """One column over the words, None where nothing is filled in."""
        values = tuple(word.fields[index] for word in self.words)
        return values if any(value not in {"_", ""} for value in values) else None

    @property
    def lines(self) -> list[int]:
        """The line number of each word."""
        return [word.line for word in self.words]


def with_documents(blocks: Iterable[Lines]) -> Iterator[tuple[int, tuple[str, Lines]]]:
    """Each block with its first line's number and the document that the last `# newdoc` comment began."""
    document, count = "", 0
    for block in blocks:
        for _, line in block:
            if line.startswith("# newdoc"):
                count += 1
                document = line.partition("=")[2].strip() or f"document {count}"
        yield block[0][0], (document, block)


def comment(line: str) -> tuple[str, str]:
    """The name and value of `# name = value`."""
    name, _, value = line[1:].partition("=")
    return name.strip(), value.strip()


def split_block(lines: Lines, *, columns: int | None = COLUMNS) -> Block:
    """The lines sorted by kind, ids checked; `columns` None: as many as the first line, ten at least."""
    block = Block(lines[0][0])
    for number, line in lines:
        if line.startswith("#"):
            name, value = comment(line)
            block.comments[name] = value
            continue
        fields = line.split("\t")
        columns = columns or max(len(fields), COLUMNS)
        if len(fields) != columns:
            found = f"The line has {len(fields)} tab-separated columns"
            expected = f"{columns} columns"
            raise Fault("wrong column count", found, expected, "Separate columns by one tab each", line=number)
        _place(block, number, fields)
    if not block.words:
        raise Fault("no words", "The block has no word line", "at least one word", "Remove the block")
    return block


def _place(block: Block, number: int, fields: list[str]) -> None:
    identifier, here = fields[0], len(block.words)
    if identifier == str(here + 1):
        if not fields[FORM].strip():
            raise Fault("empty word", "The second column is empty", "a word form", "Fill it in", line=number)
        block.words.append(Token(number, fields))
    elif "-" in identifier:
        first, last = (whole_number(part) for part in identifier.split("-", 1))
        taken = block.surfaces[-1].last if block.surfaces else -1
        if first != here + 1 or last is None or last <= here or here <= taken:
            raise _bad_id(identifier, f"a range that begins with {here + 1}", number)
        block.surfaces.append(Surface(number, fields, here, last - 1))
    elif "." in identifier:
        before, rank = (whole_number(part) for part in identifier.split(".", 1))
        if before != here or not rank:
            raise _bad_id(identifier, f"an empty node after word {here}", number)
        block.empty.append(Empty(number, fields, here))
    else:
        raise _bad_id(identifier, str(here + 1), number)


def _bad_id(identifier: str, expected: str, line: int) -> Fault:
    number = whole_number(identifier.split("-")[0].split(".")[0])
    reason = "id is no number" if number is None else "id out of order"
    found = f"The id is {identifier!r}"
    return Fault(reason, found, f"{expected} (ids count from 1, none twice or left out)", "Correct the ids", line=line)


def base_sentence(block: Block, document: str = "") -> Sentence:
    """The sentence with the layers of CoNLL-U's own columns; enhanced dependencies are not read."""
    words = tuple(word.fields[FORM] for word in block.words)
    text, offsets = _spelling(block, words)
    return Sentence(
        words=words,
        text=text,
        offsets=offsets,
        id=block.comments.get("sent_id", ""),
        document=document,
        lemmas=block.column(LEMMA),
        pos=block.column(UPOS),
        xpos=block.column(XPOS),
        features=block.column(FEATS),
        heads=_heads(block),
        relations=block.column(DEPREL),
    )


def _heads(block: Block) -> tuple[int, ...] | None:
    column = block.column(HEAD)
    if column is None:
        return None
    numbers = [whole_number(head) for head in column]
    for head, text, word in zip(numbers, column, block.words, strict=True):
        if head is None:
            reason = "missing head" if text in {"_", ""} else "head is no number"
            expected = "0 for the root, or the id of a word"
            raise Fault(reason, f"The head is {text!r}", expected, "Fill in the head column", line=word.line)
    heads = tuple(ROOT if not head else head - 1 for head in numbers)
    check_tree(heads, block.lines)
    return heads


def _spelling(block: Block, words: tuple[str, ...]) -> tuple[str, Offsets]:
    """The sentence's text and the place of each word in it."""
    pieces = _surface_tokens(block)
    forms = [token.fields[FORM] for token, _, _ in pieces]
    if "text" in block.comments:
        text = block.comments["text"]
        places = locate(forms, text)
        if places is None:
            found = f"The words do not spell the comment `# text = {text[:60]}`"
            remedy = "Correct the words or the comment"
            raise Fault("words do not match the text", found, "the words of the text in order", remedy, line=block.line)
    else:
        spaces = ["SpaceAfter=No" not in token.fields[MISC].split("|") for token, _, _ in pieces]
        text, places = spell(forms, spaces)
    offsets: list[tuple[int, int]] = []
    for (_, first, last), place in zip(pieces, places, strict=True):
        offsets.extend(_divide(words[first : last + 1], text, place))
    return text, tuple(offsets)


def _surface_tokens(block: Block) -> list[tuple[Token, int, int]]:
    """What is written: multi-word tokens and the words outside them, with the words that each covers."""
    if block.surfaces and block.surfaces[-1].last >= len(block.words):
        surface = block.surfaces[-1]
        expected = f"a range up to {len(block.words)}"
        raise Fault("id out of order", f"The id is {surface.fields[0]!r}", expected, "Correct it", line=surface.line)
    starts = {surface.first: surface for surface in block.surfaces}
    pieces: list[tuple[Token, int, int]] = []
    index = 0
    while index < len(block.words):
        surface = starts.get(index)
        last = surface.last if surface else index
        pieces.append((surface or block.words[index], index, last))
        index = last + 1
    return pieces


def _divide(words: tuple[str, ...], text: str, place: tuple[int, int]) -> list[tuple[int, int]]:
    """The characters of each word of one written token: its own where they add up, else all of the token's."""
    start, end = place
    if len(words) == 1:
        return [place]
    if len("".join(words)) != end - start or "".join(words).casefold() != text[start:end].casefold():
        return [place] * len(words)
    offsets: list[tuple[int, int]] = []
    for word in words:
        offsets.append((start, start + len(word)))
        start += len(word)
    return offsets
