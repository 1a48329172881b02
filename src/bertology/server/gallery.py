"""Telling sentences to begin with: each shows something that a published finding is about."""

from __future__ import annotations

from pydantic import BaseModel


class GallerySentence(BaseModel):
    """A text or a pair, and what to look for in it; `[MASK]` stands for the mask token of the model."""

    text: str
    text_b: str | None = None
    title: str
    look_for: str
    citation: str = ""


GALLERY = (
    GallerySentence(
        text="She opened the old letters that he had [MASK] her.",
        title="A verb and its object",
        look_for="Heads that link an object to its verb across a relative clause.",
        citation="clark2019",
    ),
    GallerySentence(
        text="The keys to the cabinet [MASK] on the table.",
        title="Agreement over an attractor",
        look_for="Is the verb plural like the keys, or singular like the cabinet?",
        citation="goldberg2019",
    ),
    GallerySentence(
        text="The nurse told the doctor that [MASK] was late.",
        title="A pronoun with two antecedents",
        look_for="Which pronoun is predicted, and which noun the heads attend to.",
        citation="clark2019",
    ),
    GallerySentence(
        text="The bank raised its interest rates. We sat on the bank of the river.",
        title="One word, two senses",
        look_for="States of the two banks: compare their nearest neighbours at low and high layers.",
        citation="reif2019",
    ),
    GallerySentence(
        text="A robin is a [MASK].",
        title="A fact",
        look_for="At which layer does the answer appear?",
        citation="",
    ),
    GallerySentence(
        text="A robin is not a [MASK].",
        title="The same fact, negated",
        look_for="Do the predictions change at all?",
        citation="",
    ),
    GallerySentence(
        text="He painted the house that his grandfather had built.",
        title="Nothing masked",
        look_for="Which heads attend to the next or previous token, and which to [SEP]?",
        citation="clark2019",
    ),
    GallerySentence(
        text="The man is playing a guitar.",
        text_b="Nobody is making music.",
        title="A pair of sentences",
        look_for="Heads that link guitar and music; a model fine-tuned for inference names the relation.",
        citation="kovaleva2019",
    ),
)
