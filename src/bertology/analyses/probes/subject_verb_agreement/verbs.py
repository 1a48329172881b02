"""Verbs that agree with a noun before them, and their other forms, from minimal pairs and treebanks.

Verbs come from minimal pairs that mark them, from the pairs of BLiMP that differ in the verb (warstadt2020: two of its
paradigms have an attractor), or from a treebank (linzen2016): a finite present verb (the governor of a
nominal subject, its auxiliary or its copula) after its subject, a noun of the same number. The other form of a verb is
the most frequent one of its lemma in the corpus; with Penn Treebank tags, and thus English text, the plural is the
lemma. Attractors are nouns of the other number between subject and verb; verbs with attractors and other nouns in
between are skipped, as in the published evaluation.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example, TextInput
from bertology.corpus.sentence import Sentence
from bertology.corpus.tagsets import universal_tag
from bertology.corpus.tasks.morphology import word_morphology

SINGULAR, PLURAL = 0, 1
NUMBERS = {"Sing": SINGULAR, "Plur": PLURAL, "singular": SINGULAR, "plural": PLURAL}
_PENN_NUMBERS = {"VBZ": SINGULAR, "VBP": PLURAL, "NN": SINGULAR, "NNP": SINGULAR, "NNS": PLURAL, "NNPS": PLURAL}

MAX_ATTRACTORS = 4
"""Verbs with this many attractors or more are reported together."""
BLIMP_PHENOMENON, BLIMP_ATTRACTORS = "subject_verb_agreement", "/distractor_agreement"
BLIMP_PARADIGMS = ("agreement_1", "agreement_relational_noun", "agreement_relative_clause")
"""Ends of the names of the paradigms whose pairs differ in the verb; the others differ in the subject."""
NEGATION = re.compile("n['’]t$")

VerbForms = Mapping[str, Mapping[int, str]]
"""Lemma -> number -> present form."""


@dataclass(frozen=True)
class AgreementVerb:
    """A verb by example and word index, with the same input in which the verb has the wrong number."""

    example_index: int
    word_index: int
    ungrammatical_input: TextInput
    number: int
    nearest_noun_number: int
    n_attractors: int

    @property
    def measure(self) -> str:
        """The name of the accuracy the verb counts in."""
        count = min(self.n_attractors, MAX_ATTRACTORS)
        return f"accuracy ({count}{' or more' * (count == MAX_ATTRACTORS)} attractor{'s' * (count != 1)})"


def agreement_verbs(corpus: Corpus) -> tuple[list[AgreementVerb], Counter[str]]:
    """The verbs of a corpus in order, and how many were skipped, by reason."""
    skipped: Counter[str] = Counter()
    forms = _verb_forms(corpus)
    verbs: list[AgreementVerb] = []
    for index, example in enumerate(corpus):
        if example.kind == "minimal_pair" and _phenomenon(example) == BLIMP_PHENOMENON:
            verbs.extend(_verbs_from_blimp(index, example, skipped))
        elif example.kind == "minimal_pair":
            verbs.extend(_verbs_from_pair(index, example))
        elif example.kind == "sentence" and example.segments[0].governors is not None:
            verbs.extend(_verbs_from_treebank(index, example.segments[0], forms, skipped))
    return verbs, skipped


def _verbs_from_pair(example_index: int, example: Example) -> Iterator[AgreementVerb]:
    """The verb of a pair whose factors give its number and the number of attractors."""
    factors = example.factors
    acceptable, unacceptable = example.segments
    targets = acceptable.marked_words.get("target", ())
    if factors.get("paradigm", "").startswith("agreement") and len(targets) == 1 and factors.get("number") in NUMBERS:
        number, n_attractors = NUMBERS[factors["number"]], int(factors.get("attractors", "0"))
        nearest = 1 - number if n_attractors else number
        yield AgreementVerb(example_index, targets[0], TextInput((unacceptable,)), number, nearest, n_attractors)


def _phenomenon(example: Example) -> str:
    """The phenomenon of a BLiMP pair, from its source `field/phenomenon/paradigm`."""
    return (example.source.split("/") + ["", ""])[1]


def _verbs_from_blimp(example_index: int, example: Example, skipped: Counter[str]) -> Iterator[AgreementVerb]:
    """The verb in which the sentences of a BLiMP pair differ; in half of the paradigms they differ in the subject."""
    acceptable, unacceptable = example.segments
    pairs = zip(acceptable.words, unacceptable.words, strict=False)
    differing = [word for word, (form, other_form) in enumerate(pairs) if form != other_form]
    if len(acceptable) != len(unacceptable) or len(differing) != 1:
        skipped["pairs that differ in more than one word"] += 1
        return
    number = _number_of_form(acceptable.words[differing[0]], unacceptable.words[differing[0]])
    if number is None or not example.source.endswith(BLIMP_PARADIGMS):
        skipped["pairs that differ in the subject"] += 1
        return
    n_attractors = int(BLIMP_ATTRACTORS in example.source)
    nearest = 1 - number if n_attractors else number
    yield AgreementVerb(example_index, differing[0], TextInput((unacceptable,)), number, nearest, n_attractors)


def _number_of_form(form: str, other_form: str) -> int | None:
    """The number of the first of two English verb forms: the singular ends in s, and is the longer if both do."""
    stem, other_stem = (NEGATION.sub("", word.lower()) for word in (form, other_form))
    ends_in_s, other_ends_in_s = stem.endswith("s"), other_stem.endswith("s")
    if ends_in_s != other_ends_in_s:
        return SINGULAR if ends_in_s else PLURAL
    return None if not ends_in_s else SINGULAR if len(stem) > len(other_stem) else PLURAL


def _verbs_from_treebank(
    example_index: int, sentence: Sentence, forms: VerbForms, skipped: Counter[str]
) -> Iterator[AgreementVerb]:
    relations, governors = sentence.relations or (), sentence.governors or ()
    for subject, relation in enumerate(relations):
        if relation.split(":")[0] not in ("nsubj", "nsubjpass") or not _is_noun(sentence, subject):
            continue
        verb = _finite_verb(sentence, governors[subject])
        number = None if verb is None else _number(sentence, verb)
        if verb is None or number is None or verb < subject:
            continue
        between = [_number(sentence, word) for word in range(subject + 1, verb) if _is_noun(sentence, word)]
        n_attractors = between.count(1 - number)
        lemma_forms = forms.get(_lemma(sentence, verb), {})
        other_form = lemma_forms.get(1 - number)
        if _number(sentence, subject) != number:
            skipped["subject of another number"] += 1
        elif 0 < n_attractors < len(between) or (between and not n_attractors):
            skipped["intervening nouns that are not attractors"] += 1
        elif sentence.words[verb] != lemma_forms.get(number) or other_form in (None, lemma_forms.get(number)):
            skipped["no other form in the corpus"] += 1
        else:
            nearest = 1 - number if n_attractors else number
            ungrammatical = TextInput((replace_word(sentence, verb, lemma_forms[1 - number]),))
            yield AgreementVerb(example_index, verb, ungrammatical, number, nearest, n_attractors)


def _verb_forms(corpus: Corpus) -> VerbForms:
    """The most frequent third-person present form of each lemma and number."""
    counts: dict[str, dict[int, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for sentence in corpus.sentences:
        for word in range(len(sentence) if sentence.lemmas and (sentence.morphology or sentence.xpos) else 0):
            number = _number(sentence, word) if _is_present(sentence, word) else None
            if number is not None and sentence.words[word].isalpha():
                lemma = _lemma(sentence, word)
                counts[lemma][number][sentence.words[word].lower()] += 1
                if sentence.xpos and sentence.xpos[word] == "VBZ":
                    counts[lemma][PLURAL]["are" if lemma == "be" else lemma] += 0
    # Ties go to the first form in the alphabet, so that the order of the corpus does not matter.
    return {
        lemma: {number: min(forms, key=lambda form: (-forms[form], form)) for number, forms in by_number.items()}
        for lemma, by_number in counts.items()
    }


def _finite_verb(sentence: Sentence, governor: int) -> int | None:
    """The finite present verb of a clause: an auxiliary or copula of its governor, or the governor."""
    if governor < 0:
        return None
    relations, governors = sentence.relations or (), sentence.governors or ()
    auxiliaries = [
        word
        for word, word_governor in enumerate(governors)
        if word_governor == governor and relations[word].split(":")[0] in ("aux", "auxpass", "cop")
    ]
    return next((word for word in [*auxiliaries, governor] if _is_present(sentence, word)), None)


def _is_present(sentence: Sentence, word: int) -> bool:
    features = word_morphology(sentence, word)
    if "Tense" in features:
        is_finite_present = features["Tense"] == "Pres" and features.get("VerbForm") == "Fin"
        return is_finite_present and features.get("Person", "3") == "3"
    return bool(sentence.xpos) and sentence.xpos[word] in ("VBZ", "VBP") and sentence.words[word].lower() != "am"


def _number(sentence: Sentence, word: int) -> int | None:
    number = NUMBERS.get(word_morphology(sentence, word).get("Number", ""))
    return number if number is not None else _PENN_NUMBERS.get(sentence.xpos[word] if sentence.xpos else "")


def _lemma(sentence: Sentence, word: int) -> str:
    return (sentence.lemmas or sentence.words)[word].lower()


def _is_noun(sentence: Sentence, word: int) -> bool:
    tag = sentence.pos[word] if sentence.pos else universal_tag(sentence.xpos[word]) if sentence.xpos else None
    return tag in ("NOUN", "PROPN")


def replace_word(sentence: Sentence, word: int, form: str) -> Sentence:
    """The sentence with another form of one word, without annotations."""
    start, end = sentence.offsets[word]
    shift = len(form) - (end - start)
    offsets = [(a + shift * (a >= end), b + shift * (b >= end)) for a, b in sentence.offsets]
    words = (*sentence.words[:word], form, *sentence.words[word + 1 :])
    return Sentence(words, sentence.text[:start] + form + sentence.text[end:], tuple(offsets))
