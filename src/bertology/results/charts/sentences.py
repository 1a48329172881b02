"""Words laid out in pixels, for figures over sentences: a font of one width makes their places known beforehand."""

from __future__ import annotations

import unicodedata

import altair as alt

from bertology.results.charts.palette import MONO, Palette
from bertology.results.charts.panels import Row, data

SIZE, SPACE = 13, 11
CELL = 0.605  # the width of every character, as a share of the font's size


def word_width(word: str, size: float) -> float:
    """The width of a word; wide characters take two cells, marks above and below none."""
    cells = sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in word
    )
    return max(1, cells) * size * CELL


def word_marks(words: list[Row], size: float, palette: Palette) -> alt.Chart:
    """The words themselves, each centred at its place."""
    chart = alt.Chart(data(words)).mark_text(font=MONO, fontSize=size, color=palette.ink, limit=0)
    return chart.encode(alt.Text("word:N"))


def sheet(width: float, height: float) -> tuple[alt.Scale, alt.Scale]:
    """Scales on which data are pixels, from the top left."""
    across, down = (alt.Scale(domain=domain, nice=False, zero=False) for domain in ([0, width], [height, 0]))
    return across, down
