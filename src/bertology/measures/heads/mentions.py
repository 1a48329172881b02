"""Mentions of entities: their head words, their types, what agrees with what, and the rules that find antecedents.

The rules are those Clark et al. (2019, section 4.3) set beside a head: the nearest mention; the nearest with the same
head word; and four sieves after Lee et al. (2011): the same words, the same head word, agreement in number, gender and
person, any mention, the nearest that passes the first sieve that any passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from bertology.corpus.grammar import universal_tag
from bertology.corpus.occupations import other_occupation
from bertology.corpus.sentence import Sentence, Span

Kind = Literal["pronoun", "proper", "nominal"]
Features = tuple[str | None, str | None, str | None]
"""Number, gender and person; None where it cannot be told."""

OTHER = "\N{MULTIPLICATION SIGN}"
"""The cluster of a candidate that refers to nothing else in its text."""

_PRONOUNS: dict[str, Features] = {
    **dict.fromkeys(("he", "him", "his", "himself"), ("one", "masculine", "third")),
    **dict.fromkeys(("she", "her", "hers", "herself"), ("one", "feminine", "third")),
    **dict.fromkeys(("it", "its", "itself"), ("one", "neuter", "third")),
    **dict.fromkeys(("they", "them", "their", "theirs", "themselves"), ("many", None, "third")),
    **dict.fromkeys(("i", "me", "my", "mine", "myself"), ("one", None, "first")),
    **dict.fromkeys(("we", "us", "our", "ours", "ourselves"), ("many", None, "first")),
    **dict.fromkeys(("you", "your", "yours", "yourself", "yourselves"), (None, None, "second")),
    **dict.fromkeys(("who", "whom", "whose", "which", "that", "this", "these", "those"), (None, None, "third")),
}
_MASCULINE = "mr sir lord king man men boy boys father son brother husband uncle gentleman gentlemen prince duke count"
_FEMININE = (
    "mrs ms miss lady queen woman women girl girls mother daughter sister wife aunt madam madame princess duchess"
)
_GENDERS = dict.fromkeys(_MASCULINE.split(), "masculine") | dict.fromkeys(_FEMININE.split(), "feminine")
_ENDING = "of in on at with from for to by about under over who whom whose which that where when , ( - -- and or"
_AFTER_HEAD = frozenset(_ENDING.split())
_CLITICS = frozenset({"'s", "’s", "'", "’"})
_ENDS = frozenset({".", "!", "?", '"', "“", "”", "''", "``", ":", ";"})


@dataclass(frozen=True, slots=True)
class Mention:
    """One mention: its words `start` to `end`, its head word, cluster and type, and what it agrees in."""

    start: int
    end: int
    head: int
    cluster: str
    kind: Kind
    features: Features
    words: tuple[str, ...]
    head_word: str


def mentions_of(part: Sentence) -> list[Mention]:
    """The mentions of a text by their head words; of those with one head word the longest.

    WinoBias marks only what corefers: the other occupation is a mention of its own.
    """
    spans = list(part.mentions or ())
    if {"pronoun", "antecedent"} <= set(part.marks):
        other = other_occupation(part)
        spans += [] if other is None else [Span(other.start, other.end, OTHER)]
    written = frozenset(part.words)
    found: dict[int, Mention] = {}
    for span in sorted(spans, key=lambda one: (one.end - one.start, one.start)):
        if span.end > span.start:  # a mention of nothing, such as a dropped pronoun, has no word to attend from
            mention = _mention(part, span, written)
            found[mention.head] = mention
    return [found[head] for head in sorted(found)]


def _mention(part: Sentence, span: Span, written: frozenset[str]) -> Mention:
    head = head_word(part, span)
    words = tuple(word.lower() for word in part.words[span.start : span.end])
    kind = _kind(part, span, head, written)
    features = _features(part, span, head, kind)
    return Mention(span.start, span.end, head, span.label, kind, features, words, words[head - span.start])


def head_word(part: Sentence, span: Span) -> int:
    """The word whose head lies outside the span; without a tree the last before a preposition, comma or the like."""
    inside = range(span.start, span.end)
    if part.heads is not None:
        tops = [word for word in inside if part.heads[word] not in inside]
        if tops:
            return tops[0]
    ends = [word for word in inside if word > span.start and part.words[word].lower() in _AFTER_HEAD]
    last = (ends[0] if ends else span.end) - 1
    return last - 1 if last > span.start and part.words[last] in _CLITICS else last


def _kind(part: Sentence, span: Span, head: int, written: frozenset[str]) -> Kind:
    word = part.words[head]
    tags = part.pos if part.pos is not None else part.xpos
    tag = None if tags is None else universal_tag(tags[head])
    if tag is None:
        if word.lower() in _PRONOUNS and span.end - span.start == 1:
            return "pronoun"
        begins = head == 0 or part.words[head - 1] in _ENDS
        named = word[:1].isupper() and not (begins and word.lower() in written)
        return "proper" if named else "nominal"
    if tag == "PRON" or (tag == "DET" and word.lower() in _PRONOUNS):
        return "pronoun"
    return "proper" if tag == "PROPN" else "nominal"


def _features(part: Sentence, span: Span, head: int, kind: Kind) -> Features:
    word = part.words[head].lower()
    if kind == "pronoun":
        return _PRONOUNS.get(word, (None, None, None))
    forms = [form.lower().rstrip(".") for form in part.words[span.start : span.end]]
    gender = next((_GENDERS[form] for form in forms if form in _GENDERS), None)
    return _number(part, span, head, kind), gender, "third"


def _number(part: Sentence, span: Span, head: int, kind: Kind) -> str:
    if "and" in part.words[span.start : span.end]:
        return "many"
    marks = part.features[head].split("|") if part.features is not None else []
    for name, number in (("Number=Plur", "many"), ("Number=Sing", "one")):
        if name in marks:
            return number
    tag = (part.xpos or part.pos or [""] * len(part))[head]
    if tag in {"NNS", "NNPS"}:
        return "many"
    word = part.words[head]
    plural = kind == "nominal" and tag != "NN" and word.endswith("s") and not word.endswith("ss")
    return "many" if plural else "one"


def agree(one: Mention, other: Mention) -> bool:
    """Whether nothing known of the number, gender and person of the two differs."""
    return all(a is None or b is None or a == b for a, b in zip(one.features, other.features, strict=True))


Rule = Callable[[Mention, Sequence[Mention]], "Mention | None"]


def _nearest(mention: Mention, candidates: Iterable[Mention]) -> Mention | None:
    return min(candidates, key=lambda other: (abs(other.head - mention.head), other.head), default=None)


def nearest(mention: Mention, candidates: Sequence[Mention]) -> Mention | None:
    """The candidate whose head word is the nearest, the earlier of two."""
    return _nearest(mention, candidates)


def same_head(mention: Mention, candidates: Sequence[Mention]) -> Mention | None:
    """The nearest candidate with the same head word, None where there is none."""
    return _nearest(mention, (other for other in candidates if other.head_word == mention.head_word))


def by_sieves(mention: Mention, candidates: Sequence[Mention]) -> Mention | None:
    """The nearest candidate that passes the first sieve that any passes."""
    sieves: tuple[Callable[[Mention], bool], ...] = (
        lambda other: other.words == mention.words,
        lambda other: other.head_word == mention.head_word,
        lambda other: agree(other, mention),
        lambda other: True,
    )
    for sieve in sieves:
        found = _nearest(mention, filter(sieve, candidates))
        if found is not None:
            return found
    return None


RULES: dict[str, Rule] = {"nearest mention": nearest, "head match": same_head, "rule-based": by_sieves}
