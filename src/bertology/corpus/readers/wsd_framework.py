"""The unified framework for word sense disambiguation: an XML file and a key file (raganato2017).

`semcor.data.xml` contains texts, sentences, words (wf) and words with a sense (instance), `semcor.gold.key.txt` the
sense keys of each instance. The first key is the sense; further keys are `further_senses`, of which each counts as
right, as in the official scorer. Words are joined by spaces. A directory with one such file is read like the file, and
the directory of the evaluation sets as their union, `ALL.data.xml`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from bertology.corpus.example import Example
from bertology.corpus.read import find_files, first_lines_text, format_suffix, reader
from bertology.corpus.sentence import Sentence, join_words
from bertology.corpus.text_files import ParseError, ParseErrorHandler, lines, non_blank_lines, parse_all
from bertology.errors import Refusal

EXAMPLE = """\
<corpus lang="en"><text id="d000"><sentence id="d000.s000">
<wf lemma="the" pos="DET">The</wf><instance id="d000.s000.t000" lemma="dog" pos="NOUN">dog</instance>
</sentence></text></corpus>"""
SenseKeys = dict[str, list[str]]
FILES = r".*\.data\.xml"
UNION = "ALL.data.xml"
EVALUATION_SETS = frozenset(
    f"{name}.data.xml" for name in ("senseval2", "senseval3", "semeval2007", "semeval2013", "semeval2015")
)


def matches(path: Path) -> bool:
    """Whether an XML file has sentences of wf and instance elements, or a directory has such files."""
    if path.is_dir():
        return any(matches(file) for file in find_files(path, FILES)[:1])
    text = first_lines_text(path)
    return format_suffix(path) == ".xml" and "<sentence" in text and ("<wf" in text or "<instance" in text)


@reader(
    "wsd_framework",
    description="word senses in the unified WSD framework: .data.xml and .gold.key.txt (a file or its directory)",
    example=EXAMPLE,
    suffixes=(".xml",),
    matches=matches,
)
def read_wsd_framework(path: Path, errors: ParseErrorHandler, *, keys: str = "") -> Iterator[Example]:
    """Yield one example per sentence; `keys` is the path of the key file if it does not have the usual name."""
    path = _data_file(path)
    key_path = Path(keys) if keys else path.with_name(path.name.removesuffix(".data.xml") + ".gold.key.txt")
    if not key_path.is_file():
        raise Refusal(
            f"{path} has no key file ({key_path.name}) in its directory",
            "NAME.data.xml and NAME.gold.key.txt in one directory",
            "Add the key file, or name it with --format-option keys=PATH",
        )
    sense_keys = dict(parse_all(key_path, errors, non_blank_lines(key_path, errors), _parse_keys))
    instances: set[str] = set()

    def to_example(line: int, sentence: TaggedSentence) -> Example:
        instances.update(word.id for word in sentence.words if word.id)
        return _to_example(sense_keys, sentence)

    units = ((sentence.line, sentence) for sentence in _tagged_sentences(path, errors))
    yield from parse_all(path, errors, units, to_example)
    for _ in sense_keys.keys() - instances:
        errors.count(key_path, None, "keys without an instance ignored")


def _data_file(path: Path) -> Path:
    """The data file itself, the only one of a directory, or the union of the evaluation sets."""
    files = find_files(path, FILES)
    if len(files) == 1:
        return files[0]
    others = [file for file in files if file.name != UNION]
    if len(files) == len(others) + 1 and EVALUATION_SETS.issuperset(file.name for file in others):
        return next(file for file in files if file.name == UNION)
    names = ", ".join(str(file.relative_to(path)) for file in files) or "no data file"
    raise Refusal(
        f"{path} contains {names}",
        "one file NAME.data.xml, or the evaluation sets with ALL.data.xml",
        "Give the file or its directory to --corpus; training corpora of the framework contain each other",
    )


@dataclass(slots=True)
class TaggedWord:
    """A word with lemma and part of speech, and an id if it has a sense."""

    line: int
    lemma: str
    pos: str
    id: str | None
    text: str = ""


@dataclass(slots=True)
class TaggedSentence:
    """The words of a <sentence> element."""

    line: int
    id: str
    document: str
    words: list[TaggedWord] = field(default_factory=list[TaggedWord])


def _parse_keys(line: int, text: str) -> tuple[str, list[str]]:
    id, *senses = text.split()
    if not senses:
        raise ParseError(
            "missing sense", f"{id} has no sense", "the id of an instance and its sense keys", "Fill it in"
        )
    return id, senses


def _to_example(sense_keys: SenseKeys, tagged: TaggedSentence) -> Example:
    gold_senses = [_gold_senses(sense_keys, word) for word in tagged.words]
    words = tuple(word.text for word in tagged.words)
    if not words:
        raise ParseError("no words", "The sentence has no words", "wf or instance elements", "Remove the sentence")
    text, offsets = join_words(words)
    sentence = Sentence(
        words=words,
        text=text,
        offsets=offsets,
        id=tagged.id,
        document=tagged.document,
        lemmas=tuple(word.lemma for word in tagged.words),
        pos=tuple(word.pos for word in tagged.words),
        senses=tuple(senses[0] if senses else None for senses in gold_senses),
        further_senses=tuple(map(tuple, (senses[1:] for senses in gold_senses)))
        if any(len(senses) > 1 for senses in gold_senses)
        else None,
    )
    return Example((sentence,), id=tagged.id)


def _gold_senses(sense_keys: SenseKeys, word: TaggedWord) -> list[str]:
    """The sense keys of a word, the first one first; none of a word that is no instance."""
    if not word.text:
        expected = "text in every wf and instance element"
        raise ParseError("empty word", "A word has no text", expected, "Fill it in", line=word.line)
    if word.id is None:
        return []
    if word.id not in sense_keys:
        problem, expected = f"The key file lacks the instance {word.id}", "a line with its id and sense keys"
        raise ParseError("missing sense", problem, expected, "Complete the key file", line=word.line)
    return sense_keys[word.id]


def _tagged_sentences(path: Path, errors: ParseErrorHandler) -> Iterator[TaggedSentence]:
    """Yield the sentences of an XML file, up to the first line that is not well-formed or not UTF-8."""
    builder, is_blank = _SentenceBuilder(), True
    try:
        for expected, (number, line) in enumerate(lines(path, errors), start=1):
            if number != expected:
                return  # a line was skipped, so that the elements of later lines are unknown
            is_blank = is_blank and not line.strip()
            builder.parser.Parse(f"{line}\n".encode(), False)
            yield from builder.pop_complete_sentences()
        if not is_blank:
            builder.parser.Parse(b"", True)
    except ParseError as error:
        error.report(path, errors, builder.parser.CurrentLineNumber)
    except expat.ExpatError as error:
        problem = f"The XML is invalid: {expat.ErrorString(error.code)}"
        remedy = "Download or copy the file again"
        ParseError("invalid XML", problem, "well-formed XML", remedy, line=error.lineno).report(path, errors)


def _refuse_entities(name: str, *_: object) -> None:
    """Entities of its own can make a small file expand without end, and no file of the framework has any."""
    raise ParseError("invalid XML", f"The file declares the entity {name!r}", "XML without entities", "Remove it")


class _SentenceBuilder:
    """Builds sentences from the elements of an XML parser."""

    def __init__(self) -> None:
        self.parser = expat.ParserCreate("utf-8")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.EntityDeclHandler = _refuse_entities
        self._document = ""
        self._sentence: TaggedSentence | None = None
        self._word: TaggedWord | None = None
        self._complete: list[TaggedSentence] = []

    def pop_complete_sentences(self) -> list[TaggedSentence]:
        complete, self._complete = self._complete, []
        return complete

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        line = self.parser.CurrentLineNumber
        if name == "text":
            self._document = attributes.get("id", "")
        elif name == "sentence":
            self._sentence = TaggedSentence(line, attributes.get("id", ""), self._document)
        elif name in {"wf", "instance"} and self._sentence is not None:
            id = attributes.get("id", "") if name == "instance" else None
            self._word = TaggedWord(line, attributes.get("lemma", "_"), attributes.get("pos", "_"), id)
            self._sentence.words.append(self._word)

    def _characters(self, text: str) -> None:
        if self._word is not None:
            self._word.text += text

    def _end(self, name: str) -> None:
        if name in {"wf", "instance"} and self._word is not None:
            self._word.text = " ".join(self._word.text.split())
            self._word = None
        elif name == "sentence" and self._sentence is not None:
            self._complete.append(self._sentence)
            self._sentence = None
