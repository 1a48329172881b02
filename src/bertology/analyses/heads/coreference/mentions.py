"""Mentions of entities: head words, types, agreement, and rules that find antecedents.

The rules are the baselines of Clark et al. (2019, section 4.3): the nearest mention; the nearest with the same head
word; and four sieves after Lee et al. (2011): the same words, the same head word, agreement in number, gender and
person, any mention. The nearest candidate of the first sieve that is not empty is the antecedent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from bertology.corpus.readers.winobias import unbracketed_occupation
from bertology.corpus.sentence import Sentence, Span
from bertology.corpus.tagsets import universal_tag

MentionType = Literal["pronoun", "proper name", "common noun"]
AgreementValues = tuple[str | None, str | None, str | None]
"""Number, gender and person; None if unknown."""

OTHER_CLUSTER = "\N{MULTIPLICATION SIGN}"
"""The cluster of a candidate that corefers with no other mention of its text."""

_PRONOUNS: dict[str, AgreementValues] = {
    **dict.fromkeys(("he", "him", "his", "himself"), ("singular", "masculine", "third")),
    **dict.fromkeys(("she", "her", "hers", "herself"), ("singular", "feminine", "third")),
    **dict.fromkeys(("it", "its", "itself"), ("singular", "neuter", "third")),
    **dict.fromkeys(("they", "them", "their", "theirs", "themselves"), ("plural", None, "third")),
    **dict.fromkeys(("i", "me", "my", "mine", "myself"), ("singular", None, "first")),
    **dict.fromkeys(("we", "us", "our", "ours", "ourselves"), ("plural", None, "first")),
    **dict.fromkeys(("you", "your", "yours", "yourself", "yourselves"), (None, None, "second")),
    **dict.fromkeys(("who", "whom", "whose", "which", "that", "this", "these", "those"), (None, None, "third")),
}
_MASCULINE = "mr sir lord king man men boy boys father son brother husband uncle gentleman gentlemen prince duke count"
_FEMININE = (
    "mrs ms miss lady queen woman women girl girls mother daughter sister wife aunt madam madame princess duchess"
)
_GENDERS = dict.fromkeys(_MASCULINE.split(), "masculine") | dict.fromkeys(_FEMININE.split(), "feminine")
_WORD_LIST_AFTER_HEAD = (
    "of in on at with from for to by about under over who whom whose which that where when , ( - -- and or"
)
_WORDS_AFTER_HEAD = frozenset(_WORD_LIST_AFTER_HEAD.split())
_CLITICS = frozenset({"'s", "’s", "'", "’"})
_CONTRACTED_VERBS = ("'s", "'d", "'ll", "'re", "'ve", "'m")
_SENTENCE_ENDS = frozenset({".", "!", "?", '"', "“", "”", "''", "``", ":", ";"})


@dataclass(frozen=True, slots=True)
class Mention:
    """A mention of words `start` to `end` (exclusive): its head word, cluster, type and agreement values."""

    start: int
    end: int
    head_word_index: int
    cluster: str
    mention_type: MentionType
    features: AgreementValues
    words: tuple[str, ...]
    head_word: str


def extract_mentions(sentence: Sentence) -> list[Mention]:
    """The mentions of a text in the order of their head words; of mentions with the same head word the longest.

    WinoBias marks only coreferent mentions: the other occupation is added as a mention.
    """
    spans = list(sentence.mentions or ())
    if {"pronoun", "antecedent"} <= set(sentence.marked_words):
        other = unbracketed_occupation(sentence)
        spans += [] if other is None else [Span(other.start, other.end, OTHER_CLUSTER)]
    word_forms = frozenset(sentence.words)
    by_head_word: dict[int, Mention] = {}
    for span in sorted(spans, key=lambda span: (span.end - span.start, span.start)):
        if span.end > span.start:  # an empty mention, such as a dropped pronoun, has no word to attend from
            mention = _build_mention(sentence, span, word_forms)
            by_head_word[mention.head_word_index] = mention
    return [by_head_word[index] for index in sorted(by_head_word)]


def _build_mention(sentence: Sentence, span: Span, word_forms: frozenset[str]) -> Mention:
    index = find_head_word(sentence, span)
    words = tuple(word.lower() for word in sentence.words[span.start : span.end])
    mention_type = _mention_type(sentence, span, index, word_forms)
    features = _agreement_values(sentence, span, index, mention_type)
    if mention_type == "pronoun" and len(words) == 1:
        words = (_pronoun_form(words[0]),)
    return Mention(span.start, span.end, index, span.label, mention_type, features, words, words[index - span.start])


def find_head_word(sentence: Sentence, span: Span) -> int:
    """The word whose governor is outside the span; without a tree the last word before a preposition or comma."""
    inside = range(span.start, span.end)
    if sentence.governors is not None:
        roots = [word for word in inside if sentence.governors[word] not in inside]
        if roots:
            return roots[0]
    ends = [word for word in inside if word > span.start and sentence.words[word].lower() in _WORDS_AFTER_HEAD]
    last = (ends[0] if ends else span.end) - 1
    return last - 1 if last > span.start and sentence.words[last] in _CLITICS else last


def _mention_type(sentence: Sentence, span: Span, head_word_index: int, word_forms: frozenset[str]) -> MentionType:
    word = sentence.words[head_word_index]
    if head_word_index in sentence.marked_words.get("pronoun", ()):
        return "pronoun"
    tags = sentence.pos if sentence.pos is not None else sentence.xpos
    tag = None if tags is None else universal_tag(tags[head_word_index])
    if tag is None:
        if _pronoun_form(word) in _PRONOUNS and span.end - span.start == 1:
            return "pronoun"
        starts_sentence = head_word_index == 0 or sentence.words[head_word_index - 1] in _SENTENCE_ENDS
        is_name = word[:1].isupper() and not (starts_sentence and word.lower() in word_forms)
        return "proper name" if is_name else "common noun"
    if tag == "PRON" or (tag == "DET" and word.lower() in _PRONOUNS):
        return "pronoun"
    return "proper name" if tag == "PROPN" else "common noun"


def _pronoun_form(word: str) -> str:
    """The pronoun of a word with a contracted verb, *she* of *She's*; any other word in lower case."""
    lowered = word.lower().replace("’", "'")
    form = next((lowered.removesuffix(verb) for verb in _CONTRACTED_VERBS if lowered.endswith(verb)), lowered)
    return form if form in _PRONOUNS else word.lower()


def _agreement_values(
    sentence: Sentence, span: Span, head_word_index: int, mention_type: MentionType
) -> AgreementValues:
    word = sentence.words[head_word_index].lower()
    if mention_type == "pronoun":
        return _PRONOUNS.get(_pronoun_form(word), (None, None, None))
    forms = [form.lower().rstrip(".") for form in sentence.words[span.start : span.end]]
    gender = next((_GENDERS[form] for form in forms if form in _GENDERS), None)
    return _grammatical_number(sentence, span, head_word_index, mention_type), gender, "third"


def _grammatical_number(sentence: Sentence, span: Span, head_word_index: int, mention_type: MentionType) -> str:
    if "and" in sentence.words[span.start : span.end]:
        return "plural"
    features = sentence.morphology[head_word_index].split("|") if sentence.morphology is not None else []
    for name, number in (("Number=Plur", "plural"), ("Number=Sing", "singular")):
        if name in features:
            return number
    tag = (sentence.xpos or sentence.pos or [""] * len(sentence))[head_word_index]
    if tag in {"NNS", "NNPS"}:
        return "plural"
    word = sentence.words[head_word_index]
    is_plural = mention_type == "common noun" and tag != "NN" and word.endswith("s") and not word.endswith("ss")
    return "plural" if is_plural else "singular"


def features_agree(first: Mention, second: Mention) -> bool:
    """Whether number, gender and person of the two are compatible; unknown values agree with any value."""
    return all(a is None or b is None or a == b for a, b in zip(first.features, second.features, strict=True))


AntecedentRule = Callable[[Mention, Sequence[Mention]], "Mention | None"]


def nearest_antecedent(mention: Mention, candidates: Iterable[Mention]) -> Mention | None:
    """The candidate with the nearest head word, the earlier of two equally near."""
    return min(
        candidates,
        key=lambda candidate: (abs(candidate.head_word_index - mention.head_word_index), candidate.head_word_index),
        default=None,
    )


def head_match_antecedent(mention: Mention, candidates: Sequence[Mention]) -> Mention | None:
    """The nearest candidate with the same head word, or None."""
    return nearest_antecedent(mention, (c for c in candidates if c.head_word == mention.head_word))


def sieve_antecedent(mention: Mention, candidates: Sequence[Mention]) -> Mention | None:
    """The nearest candidate of the first sieve that any candidate passes."""
    sieves: tuple[Callable[[Mention], bool], ...] = (
        lambda candidate: candidate.words == mention.words,
        lambda candidate: candidate.head_word == mention.head_word,
        lambda candidate: features_agree(candidate, mention),
        lambda candidate: True,
    )
    for sieve in sieves:
        antecedent = nearest_antecedent(mention, filter(sieve, candidates))
        if antecedent is not None:
            return antecedent
    return None


ANTECEDENT_RULES: dict[str, AntecedentRule] = {
    "nearest mention": nearest_antecedent,
    "nearest with same head word": head_match_antecedent,
    "rule-based": sieve_antecedent,
}
