"""Sentences of tagged words from XML, one at a time and with line numbers (the form of raganato2017)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from bertology.corpus.faults import Fault
from bertology.corpus.source import Problems, lines


@dataclass(slots=True)
class TaggedWord:
    """A word, its lemma and part of speech, and its id where it is to be disambiguated."""

    line: int
    lemma: str
    pos: str
    id: str | None
    text: str = ""


@dataclass(slots=True)
class TaggedSentence:
    """The words between one <sentence> and its end."""

    line: int
    id: str
    document: str
    words: list[TaggedWord] = field(default_factory=list[TaggedWord])


def tagged_sentences(path: Path, problems: Problems) -> Iterator[TaggedSentence]:
    """The sentences of the file as they are read, up to the first place where it is no XML, or no UTF-8."""
    builder, blank = _Builder(), True
    try:
        for expected, (number, line) in enumerate(lines(path, problems), start=1):
            if number != expected:
                return  # a line was skipped: what its words belong to is not known
            blank = blank and not line.strip()
            builder.feed(line + "\n")
            yield from builder.finished()
        if not blank:
            builder.end()
    except expat.ExpatError as error:
        found = f"The XML breaks off: {expat.ErrorString(error.code)}"
        fault = Fault("invalid XML", found, "well-formed XML", "Take the file anew", line=error.lineno)
        fault.report(path, problems)


class _Builder:
    def __init__(self) -> None:
        self.parser = expat.ParserCreate("utf-8")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.document = ""
        self.sentence: TaggedSentence | None = None
        self.word: TaggedWord | None = None
        self.done: list[TaggedSentence] = []

    def feed(self, text: str) -> None:
        self.parser.Parse(text.encode(), False)

    def end(self) -> None:
        self.parser.Parse(b"", True)

    def finished(self) -> list[TaggedSentence]:
        done, self.done = self.done, []
        return done

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        line = self.parser.CurrentLineNumber
        if name == "text":
            self.document = attributes.get("id", "")
        elif name == "sentence":
            self.sentence = TaggedSentence(line, attributes.get("id", ""), self.document)
        elif name in {"wf", "instance"} and self.sentence is not None:
            identifier = attributes.get("id", "") if name == "instance" else None
            lemma, pos = attributes.get("lemma", "_"), attributes.get("pos", "_")
            self.word = TaggedWord(line, lemma, pos, identifier)
            self.sentence.words.append(self.word)

    def _characters(self, text: str) -> None:
        if self.word is not None:
            self.word.text += text

    def _end(self, name: str) -> None:
        if name in {"wf", "instance"} and self.word is not None:
            self.word.text = " ".join(self.word.text.split())
            self.word = None
        elif name == "sentence" and self.sentence is not None:
            self.done.append(self.sentence)
            self.sentence = None
