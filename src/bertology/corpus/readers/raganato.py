"""Word sense disambiguation in the unified framework's form: XML and a key file beside it (raganato2017).

`semcor.data.xml` holds texts, sentences, words (wf) and words to disambiguate (instance), `semcor.gold.key.txt` the
sense keys of each instance. Senses are the first key; further ones are counted. Words are joined by blanks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bertology.corpus.corpus import Item
from bertology.corpus.faults import Fault, parsed
from bertology.corpus.read import reader
from bertology.corpus.sentence import Sentence, spell
from bertology.corpus.sniff import beginning, suffix
from bertology.corpus.source import Problems, lines
from bertology.corpus.tagged_xml import TaggedSentence, TaggedWord, tagged_sentences
from bertology.errors import Refusal

EXAMPLE = """\
<corpus lang="en"><text id="d000"><sentence id="d000.s000">
<wf lemma="the" pos="DET">The</wf><instance id="d000.s000.t000" lemma="dog" pos="NOUN">dog</instance>
</sentence></text></corpus>"""
Keys = dict[str, list[str]]


def recognises(path: Path) -> bool:
    """Whether an XML file holds sentences of wf and instance elements."""
    head = beginning(path)
    return suffix(path) == ".xml" and "<sentence" in head and ("<wf" in head or "<instance" in head)


@reader(
    "raganato",
    about="word senses: the unified evaluation framework's .data.xml with .gold.key.txt beside it",
    example=EXAMPLE,
    suffixes=(".xml",),
    recognises=recognises,
)
def read_raganato(path: Path, problems: Problems, *, keys: str = "") -> Iterator[Item]:
    """One item a sentence; `keys` names the key file where it does not lie beside under the usual name."""
    key_path = Path(keys) if keys else path.with_name(path.name.removesuffix(".data.xml") + ".gold.key.txt")
    if not key_path.is_file():
        raise Refusal(
            f"{path} has no key file ({key_path.name}) beside it",
            "NAME.data.xml and NAME.gold.key.txt in one folder",
            "Put the key file there, or name it with the option keys=PATH",
        )
    gold = dict(parsed(key_path, problems, _filled(key_path, problems), _key))
    used: set[str] = set()

    def item(line: int, tagged: TaggedSentence) -> Item:
        used.update(word.id for word in tagged.words if word.id)
        return _item(path, problems, gold, tagged)

    units = ((tagged.line, tagged) for tagged in tagged_sentences(path, problems))
    yield from parsed(path, problems, units, item)
    for _ in gold.keys() - used:
        problems.note(key_path, None, "key without an instance")


def _filled(path: Path, problems: Problems) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in lines(path, problems) if line.strip())


def _key(line: int, text: str) -> tuple[str, list[str]]:
    name, *senses = text.split()
    if not senses:
        raise Fault("missing sense", f"{name} has no sense", "an instance's id and its sense keys", "Fill it in")
    return name, senses


def _item(path: Path, problems: Problems, gold: Keys, tagged: TaggedSentence) -> Item:
    senses = [_sense(path, problems, gold, word) for word in tagged.words]
    words = tuple(word.text for word in tagged.words)
    if not words:
        raise Fault("no words", "The sentence has no words", "wf or instance elements", "Remove the sentence")
    text, offsets = spell(words)
    sentence = Sentence(
        words=words,
        text=text,
        offsets=offsets,
        id=tagged.id,
        document=tagged.document,
        lemmas=tuple(word.lemma for word in tagged.words),
        pos=tuple(word.pos for word in tagged.words),
        senses=tuple(senses),
    )
    return Item((sentence,), id=tagged.id)


def _sense(path: Path, problems: Problems, gold: Keys, word: TaggedWord) -> str | None:
    if not word.text:
        raise Fault("empty word", "A word has no text", "text in every wf and instance", "Fill it in", line=word.line)
    if word.id is None:
        return None
    if word.id not in gold:
        found = f"The instance {word.id} is not in the key file"
        raise Fault(
            "missing sense", found, "a line with its id and sense keys", "Complete the key file", line=word.line
        )
    for _ in gold[word.id][1:]:
        problems.note(path, word.line, "further gold sense")
    return gold[word.id][0]
