"""Count the words of the text, for the word frequency list that comes with the package."""

import argparse
import lzma
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from bertology.corpus.word_frequencies import word_form
from pretraining.corpus import read_documents

WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
PUNCTUATION = re.compile(r"(?:([^\w\s])\1*)|_+")
"""One character, or the same character several times."""
ABBREVIATION = re.compile(r"(?<!\w)(?:(?:[^\W\d_]\.)+|[^\W\d_]{1,5}\.)(?= [^\W_])")
"""A short word or single letters with a full stop inside a sentence."""
CLITIC = re.compile(r"(.+?)(n't|'(?:s|m|d|ll|re|ve))")
MIN_COUNT = 2


def count_forms(sentences: Iterable[str]) -> Counter[str]:
    """The count of each form of word, abbreviation and punctuation.

    Treebanks split contractions and hyphenated words and plain text does not, so these are counted as a whole and by
    their parts; likewise repeated punctuation (`...`).
    """
    wholes, runs, forms = Counter[str](), Counter[str](), Counter[str]()
    for sentence in sentences:
        text = word_form(sentence)
        wholes.update(WORD.findall(text))
        runs.update(match[0] for match in PUNCTUATION.finditer(text))
        forms.update(ABBREVIATION.findall(text))
    for counts, split in ((wholes, _word_parts), (runs, _character)):
        for form, count in counts.items():
            for part in (form, *split(form)):
                forms[part] += count
    return forms


def _word_parts(word: str) -> Iterator[str]:
    if "-" in word or "'" in word:
        for part in word.split("-"):
            clitic = CLITIC.fullmatch(part)
            yield from clitic.groups() if clitic else (part,) if "-" in word else part.split("'")


def _character(run: str) -> Iterable[str]:
    return run[:1] if len(run) > 1 else ()


def frequency_list(forms: Counter[str], min_count: int = MIN_COUNT) -> str:
    """Lines of a count and the forms that occur so often, the most frequent first."""
    by_count: dict[int, list[str]] = {}
    for form, count in forms.items():
        if count >= min_count:
            by_count.setdefault(count, []).append(form)
    return "".join(f"{count} {' '.join(sorted(by_count[count]))}\n" for count in sorted(by_count, reverse=True))


def main() -> None:
    """Count the words of TEXT and write the list, compressed."""
    parser = argparse.ArgumentParser(prog="python -m pretraining.word_frequencies", description=main.__doc__)
    parser.add_argument("text", type=Path, help="one sentence per line, a blank line between documents; may be .xz")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the list, .txt.xz")
    parser.add_argument("--min-count", type=int, default=MIN_COUNT, help="leave rarer forms out")
    options = parser.parse_args()
    sentences = (sentence for document in read_documents(options.text) for sentence in document)
    text = frequency_list(count_forms(sentences), options.min_count)
    options.output.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    main()
