"""Verbs that agree with a noun: in minimal pairs that mark them, and in treebanks (linzen2016).

In a treebank: a finite present verb (the head of a nominal subject, its auxiliary or its copula) after its subject, a
noun of the same number. Its other form is the one that the corpus itself shows most often for the lemma; where the tags
are the Penn Treebank's, and the text thus English, the plural is the lemma itself. Attractors are
nouns between subject and verb of the other number; where only some of the nouns between are attractors the verb is left
out, as the published evaluation does.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bertology.corpus.corpus import Corpus, Input, Item
from bertology.corpus.factors import factors
from bertology.corpus.grammar import universal_tag
from bertology.corpus.sentence import Sentence
from bertology.corpus.tasks.morphology import features

SINGULAR, PLURAL = 0, 1
NUMBERS = {"Sing": SINGULAR, "Plur": PLURAL, "singular": SINGULAR, "plural": PLURAL}
_PENN_NUMBERS = {"VBZ": SINGULAR, "VBP": PLURAL, "NN": SINGULAR, "NNP": SINGULAR, "NNS": PLURAL, "NNPS": PLURAL}

Forms = Mapping[str, Mapping[int, str]]
"""Lemma -> number -> form in the present."""


@dataclass(frozen=True)
class Verb:
    """A verb by the number of its item, of its input within it and of its word, and the same input with a wrong form.

    `number` is the verb's own; `nearest` is that of the noun right before it.
    """

    item: int
    word: int
    wrong: Input
    number: int
    nearest: int
    attractors: int


def agreeing_verbs(corpus: Corpus) -> tuple[list[Verb], Counter[str]]:
    """The verbs of a corpus in order, and how many others were left out and why."""
    left: Counter[str] = Counter()
    forms = _forms(corpus)
    found: list[Verb] = []
    for number, item in enumerate(corpus):
        if item.kind == "minimal_pair":
            found.extend(_marked(number, item))
        elif item.kind == "sentence" and item.parts[0].heads is not None:
            found.extend(_annotated(number, item.parts[0], forms, left))
    return found, left


def _marked(place: int, item: Item) -> Iterator[Verb]:
    """The verb of a pair whose factors say its number and how many attractors there are."""
    known = factors(item)
    good, bad = item.parts
    targets = good.marks.get("target", ())
    if known.get("paradigm", "").startswith("agreement") and len(targets) == 1 and known.get("number") in NUMBERS:
        number, attractors = NUMBERS[known["number"]], int(known.get("attractors", "0"))
        yield Verb(place, targets[0], Input((bad,)), number, 1 - number if attractors else number, attractors)


def _annotated(place: int, sentence: Sentence, forms: Forms, left: Counter[str]) -> Iterator[Verb]:
    relations, heads = sentence.relations or (), sentence.heads or ()
    for subject, relation in enumerate(relations):
        if relation.split(":")[0] not in ("nsubj", "nsubjpass") or not _is_noun(sentence, subject):
            continue
        verb = _finite(sentence, heads[subject])
        number = None if verb is None else _number(sentence, verb)
        if verb is None or number is None or verb < subject:
            continue
        between = [_number(sentence, word) for word in range(subject + 1, verb) if _is_noun(sentence, word)]
        attractors = between.count(1 - number)
        other = forms.get(_lemma(sentence, verb), {})
        if _number(sentence, subject) != number:
            left["subject of another number"] += 1
        elif 0 < attractors < len(between) or (between and not attractors):
            left["nouns between that are no attractors"] += 1
        elif sentence.words[verb] != other.get(number) or other.get(1 - number) in (None, other.get(number)):
            left["no other form in the corpus"] += 1
        else:
            nearest = 1 - number if attractors else number
            yield Verb(place, verb, Input((with_word(sentence, verb, other[1 - number]),)), number, nearest, attractors)


def _forms(corpus: Corpus) -> Forms:
    """The most frequent third-person form of each lemma and number in the present."""
    seen: dict[str, dict[int, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for sentence in corpus.sentences:
        for word in range(len(sentence) if sentence.lemmas and (sentence.features or sentence.xpos) else 0):
            number = _number(sentence, word) if _is_present(sentence, word) else None
            if number is not None and sentence.words[word].isalpha():
                lemma = _lemma(sentence, word)
                seen[lemma][number][sentence.words[word].lower()] += 1
                if sentence.xpos and sentence.xpos[word] == "VBZ":
                    seen[lemma][PLURAL]["are" if lemma == "be" else lemma] += 0
    # Of forms that are equally frequent the first in the alphabet, whatever the order of the corpus.
    return {
        lemma: {number: min(counts, key=lambda form: (-counts[form], form)) for number, counts in numbers.items()}
        for lemma, numbers in seen.items()
    }


def _finite(sentence: Sentence, head: int) -> int | None:
    """The finite present verb of a clause: its head, or an auxiliary or copula of it."""
    relations, heads = sentence.relations or (), sentence.heads or ()
    if head < 0:
        return None
    own = [w for w, h in enumerate(heads) if h == head and relations[w].split(":")[0] in ("aux", "auxpass", "cop")]
    present = [word for word in [*own, head] if _is_present(sentence, word)]
    return present[0] if present else None


def _is_present(sentence: Sentence, word: int) -> bool:
    feats = features(sentence, word)
    if "Tense" in feats:
        return feats["Tense"] == "Pres" and feats.get("VerbForm") == "Fin" and feats.get("Person", "3") == "3"
    return bool(sentence.xpos) and sentence.xpos[word] in ("VBZ", "VBP") and sentence.words[word].lower() != "am"


def _number(sentence: Sentence, word: int) -> int | None:
    given = NUMBERS.get(features(sentence, word).get("Number", ""))
    return given if given is not None else _PENN_NUMBERS.get(sentence.xpos[word] if sentence.xpos else "")


def _lemma(sentence: Sentence, word: int) -> str:
    return (sentence.lemmas or sentence.words)[word].lower()


def _is_noun(sentence: Sentence, word: int) -> bool:
    tag = sentence.pos[word] if sentence.pos else universal_tag(sentence.xpos[word]) if sentence.xpos else None
    return tag in ("NOUN", "PROPN")


def with_word(sentence: Sentence, word: int, form: str) -> Sentence:
    """The sentence with another form in the place of one of its words; annotation is not carried over."""
    start, end = sentence.offsets[word]
    shift = len(form) - (end - start)
    offsets = [(a + shift * (a >= end), b + shift * (b >= end)) for a, b in sentence.offsets]
    words: Sequence[str] = [form if place == word else own for place, own in enumerate(sentence.words)]
    return Sentence(tuple(words), sentence.text[:start] + form + sentence.text[end:], tuple(offsets))
