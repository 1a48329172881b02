"""What a model fine-tuned on inference says of pairs by its own head, and of their second texts alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bertology.corpus.corpus import Item
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal


def head_labels(encoder: Encoder, known: Sequence[str], named: str = "") -> tuple[str, ...] | None:
    """The classes of the model's head by number, or None where it has no such head or tells other classes apart.

    `named` are the classes with commas between them, for a model that has no names for them.
    """
    # Naming an analysis must not import torch.
    from bertology.encoder.huggingface import HuggingFaceEncoder
    from bertology.encoder.task_heads import labels_of

    if not isinstance(encoder, HuggingFaceEncoder) or "label" not in encoder.outputs:
        return None
    own = labels_of(encoder)
    if named:
        given = tuple(name.strip().lower() for name in named.split(","))
        if set(given) != set(known) or len(given) != len(own):
            raise Refusal(
                f"--labels was given {named!r} for a head with {len(own)} classes",
                f"{', '.join(known)} in the order of the head, commas between them",
                "See the model's card for the order",
            )
        return given
    lower = tuple(name.lower() for name in own)
    return lower if set(lower) == set(known) else None


def fits(encoder: Encoder, items: Sequence[Item]) -> list[bool]:
    """Whether the model can read each pair whole."""
    shown = [shown for item in items for shown in item.inputs]
    return [len(pieces) <= encoder.max_pieces for pieces in encoder.tokenise(shown)]


def answers_of_head(encoder: Encoder, items: Sequence[Item], labels: tuple[str, ...]) -> list[str]:
    """The likeliest class of each pair, all of which the model can read whole."""
    from bertology.encoder.huggingface import HuggingFaceEncoder
    from bertology.finetuning.learner import Learner
    from bertology.finetuning.tasks.classes import Classes

    assert isinstance(encoder, HuggingFaceEncoder)
    task = Classes("pair", labels)
    seen = task.see(items, encoder.tokenise, longest=encoder.max_pieces)
    assert len(seen.items) == len(items), "pairs that are too long are left out before"
    return task.answers(Learner(encoder), seen)


def second_texts(items: Sequence[Item]) -> list[Item]:
    """The second text of each pair as an item of its own."""
    return [replace(item, parts=item.parts[1:], kind="sentence") for item in items]
