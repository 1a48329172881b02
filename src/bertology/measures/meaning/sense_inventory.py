"""The sense to fall back on where a word was never seen: the most frequent one in training, or WordNet's first.

WordNet is read with the package `wn`, which is no dependency: neither it nor its data come with this package.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from bertology.errors import Refusal
from bertology.measures.meaning.sense_answers import BackOff, Fallback
from bertology.measures.meaning.sense_material import most_frequent

Named = Literal["none", "most_frequent", "wordnet"]

TAGS = {"NOUN": "n", "PROPN": "n", "VERB": "v", "AUX": "v", "ADJ": "a", "ADV": "r"}


def fallback_named(name: Named, lexicon: str) -> Fallback | None:
    """The rule of that name; with `wordnet`, the lexicon of the package wn that it asks."""
    match name:
        case "none":
            return None
        case "most_frequent":
            return _most_frequent
        case "wordnet":
            first = _first_in_wordnet(lexicon)
            return lambda _: first


def _most_frequent(senses: Sequence[str]) -> BackOff:
    """The most frequent sense in training whose name begins with the lemma and `%`, as WordNet's sense keys do.

    A word can be there under another string: training has forms where the test has lemmas.
    """
    found: dict[str, str] = {}
    for sense in most_frequent(senses):
        lemma, mark, _ = sense.partition("%")
        if mark:
            found.setdefault(lemma.lower(), sense)
    return lambda lemma, pos: found.get(lemma.replace(" ", "_"))


def _first_in_wordnet(lexicon: str) -> BackOff:
    wordnet, key_of = _opened(lexicon)

    def first(lemma: str, pos: str) -> str | None:
        tag = TAGS.get(pos)
        words = wordnet.words(lemma.replace("_", " "), pos=tag) if tag else wordnet.words(lemma.replace("_", " "))
        senses = [sense for word in words for sense in word.senses()]
        return key_of(senses[0]) if senses else None

    return first


def _opened(lexicon: str) -> tuple[Any, Any]:
    """The lexicon, and what gives a sense's key."""
    try:
        import wn  # pyright: ignore[reportMissingImports]
        from wn.compat import sensekey  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise Refusal(
            "--back-off wordnet needs the package wn, which is not installed",
            "wn and the data of a lexicon",
            f"Install it with `pip install wn`, then fetch the data with `python -m wn download {lexicon}`",
        ) from None
    package: Any = wn
    try:
        return package.Wordnet(lexicon), sensekey.sense_key_getter(lexicon)
    except package.Error as error:
        raise Refusal(
            f"wn has no lexicon {lexicon!r} with sense keys ({error})",
            "a lexicon whose data are there",
            f"Fetch it with `python -m wn download {lexicon}`, or name another with --lexicon",
        ) from error
