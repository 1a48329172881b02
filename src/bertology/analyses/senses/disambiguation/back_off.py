"""Back-off senses of words not seen in training: the most frequent sense in training, or WordNet's first sense.

WordNet is read with the package `wn`, which is not a dependency; neither it nor its data ship with bertology.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from bertology.analyses.word_senses.disambiguation import BackOff, BackOffFactory
from bertology.analyses.word_senses.occurrences import senses_by_frequency
from bertology.errors import Refusal

BackOffName = Literal["none", "most-frequent", "wordnet"]

WORDNET_POS = {"NOUN": "n", "PROPN": "n", "VERB": "v", "AUX": "v", "ADJ": "a", "ADV": "r"}


def load_back_off(name: BackOffName, lexicon: str) -> BackOffFactory | None:
    """The back-off of that name; `lexicon` is the lexicon of the package wn for `wordnet`."""
    match name:
        case "none":
            return None
        case "most-frequent":
            return _most_frequent_back_off
        case "wordnet":
            first = _wordnet_back_off(lexicon)
            return lambda _: first


def _most_frequent_back_off(senses: Sequence[str]) -> BackOff:
    """The most frequent training sense whose name starts with the lemma and `%`, as in WordNet's sense keys.

    The lemma itself may be missing, since training data may have word forms where test data have lemmas.
    """
    sense_by_lemma: dict[str, str] = {}
    for sense in senses_by_frequency(senses):
        lemma, mark, _ = sense.partition("%")
        if mark:
            sense_by_lemma.setdefault(lemma.lower(), sense)
    return lambda lemma, pos: sense_by_lemma.get(lemma.replace(" ", "_"))


def _wordnet_back_off(lexicon: str) -> BackOff:
    wordnet, sense_key = _open_wordnet(lexicon)

    def first_sense(lemma: str, pos: str) -> str | None:
        tag = WORDNET_POS.get(pos)
        words = wordnet.words(lemma.replace("_", " "), pos=tag) if tag else wordnet.words(lemma.replace("_", " "))
        senses = [sense for word in words for sense in word.senses()]
        return sense_key(senses[0]) if senses else None

    return first_sense


def _open_wordnet(lexicon: str) -> tuple[Any, Any]:
    """The lexicon, and the function from a sense to its key."""
    try:
        import wn  # pyright: ignore[reportMissingImports]
        from wn.compat import sensekey  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise Refusal(
            "--fallback wordnet needs the package `wn`, which is not installed",
            "wn and the data of a lexicon",
            f"Install it with `pip install wn`, then run `python -m wn download {lexicon}`",
        ) from None
    package: Any = wn
    try:
        return package.Wordnet(lexicon), sensekey.sense_key_getter(lexicon)
    except package.Error as error:
        raise Refusal(
            f"wn has no lexicon {lexicon!r} with sense keys ({error})",
            "an installed lexicon",
            f"Run `python -m wn download {lexicon}`, or name another with --wordnet-lexicon",
        ) from error
