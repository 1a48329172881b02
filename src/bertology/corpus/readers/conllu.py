"""CoNLL-U: Universal Dependencies treebanks, with the layers that ride in the MISC column (conllu).

Read beside the ten columns: `# newdoc` (document), `# text` (offsets; without it the words are spelled with
SpaceAfter=No), and in MISC `NER=B-PER` (entities), `Entity=(e1-person` (mentions, label = cluster; corefud) and
`Sense=` (senses). The words are the syntactic words; those of a multi-word token share its characters where they do
not add up to it (French du = de + le). Empty nodes are counted and left out; enhanced dependencies are not read. With
`unit=document` the sentences of a document make one item.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from bertology.corpus.bio import decode
from bertology.corpus.brackets import Cell, read_mentions
from bertology.corpus.corpus import Item
from bertology.corpus.documents import Unit, in_units
from bertology.corpus.faults import Fault, parsed
from bertology.corpus.read import reader
from bertology.corpus.sentence import Sentence
from bertology.corpus.sniff import first_lines
from bertology.corpus.source import Problems, blocks
from bertology.corpus.treebank import COLUMNS, MISC, Block, Lines, Token, base_sentence, split_block, with_documents
from bertology.errors import unknown_name

EXAMPLE = """\
# sent_id = 1
# text = Dogs bark.
1	Dogs	dog	NOUN	NNS	Number=Plur	2	nsubj	_	_
2	bark	bark	VERB	VBP	_	0	root	_	SpaceAfter=No
3	.	.	PUNCT	.	_	2	punct	_	_"""


def recognises(path: Path) -> bool:
    """Whether the first word line has ten columns and a number first."""
    token = next((line for line in first_lines(path) if not line.startswith("#")), "").split("\t")
    return len(token) == COLUMNS and token[0].split("-")[0].isdecimal()


@reader(
    "conllu",
    about="Universal Dependencies treebanks: pos, lemmas, features, trees; entities, coreference, senses in MISC",
    example=EXAMPLE,
    suffixes=(".conllu", ".conllup"),
    recognises=recognises,
)
def read_conllu(path: Path, problems: Problems, *, unit: Unit = "sentence") -> Iterator[Item]:
    """One item a sentence or a document."""
    if unit not in ("sentence", "document"):
        raise unknown_name("unit of a corpus", unit, ("sentence", "document"))
    units = with_documents(blocks(path, problems))
    clusters = _Clusters()
    yield from in_units(parsed(path, problems, units, partial(_item, path, problems, clusters)), unit)


class _Clusters:
    """Takes the cluster id out of CorefUD's attributes, whose order the file's `# global.Entity` comment gives."""

    place = 0

    def configure(self, block: Block) -> None:
        names = block.comments.get("global.Entity", "").split("-")
        self.place = names.index("eid") if "eid" in names else self.place

    def __call__(self, opening: str) -> str:
        fields = opening.split("-")
        return fields[self.place] if self.place < len(fields) else fields[0]


def _item(path: Path, problems: Problems, clusters: _Clusters, line: int, unit: tuple[str, Lines]) -> Item:
    document, lines = unit
    block = split_block(lines)
    clusters.configure(block)
    sentence = base_sentence(block, document)
    if any("=" in token.fields[MISC] for token in (*block.words, *block.empty)):
        sentence = _with_misc(sentence, block, clusters, path, problems)
    for token in block.empty:
        problems.note(path, token.line, "empty token")
    return Item((sentence,), id=sentence.id)


def _with_misc(sentence: Sentence, block: Block, clusters: _Clusters, path: Path, problems: Problems) -> Sentence:
    attributes = [_attributes(word) for word in block.words]
    if any("NER" in values for values in attributes):
        tags = [values.get("NER", "O") for values in attributes]
        sentence = replace(sentence, entities=decode(tags, lines=block.lines))
    if any("Sense" in values for values in attributes):
        sentence = replace(sentence, senses=tuple(values.get("Sense") for values in attributes))
    cells = list(_entity_cells(block, attributes))
    if cells:
        mentions = read_mentions(cells, clusters)
        sentence = replace(sentence, mentions=mentions.spans)
        for reason, line in mentions.left_out:
            problems.note(path, line, reason)
    return sentence


def _entity_cells(block: Block, attributes: list[dict[str, str]]) -> Iterator[Cell]:
    """The Entity attributes of words and empty nodes in the order of the file."""
    cells = [
        Cell(index, index + 1, word.line, values["Entity"])
        for index, (word, values) in enumerate(zip(block.words, attributes, strict=True))
        if "Entity" in values
    ]
    for node in block.empty:
        values = _attributes(node)
        if "Entity" in values:
            cells.append(Cell(node.before, node.before, node.line, values["Entity"]))
    return iter(sorted(cells, key=lambda cell: cell.line))


def _attributes(token: Token) -> dict[str, str]:
    if token.fields[MISC] == "_":
        return {}
    values: dict[str, str] = {}
    for part in token.fields[MISC].split("|"):
        name, _, value = part.partition("=")
        if name in {"NER", "Entity", "Sense"} and not value:
            expected = f"{name}=value"
            raise Fault("missing annotation", f"{name} has no value", expected, "Fill it in", line=token.line)
        values[name] = value
    return values
