"""How far does the last layer move when one head is silenced? Run: python examples/take_a_head_away.py [MODEL]."""

import sys

import numpy as np
import torch

import bertology
from bertology.encoder.attend import Gates
from bertology.encoder.huggingface import HuggingFaceEncoder

encoder = bertology.load(sys.argv[1] if len(sys.argv) > 1 else "mini")
assert isinstance(encoder, HuggingFaceEncoder)
corpus = bertology.read_text("The keys to the cabinet are on the table.", "It is raining again.")
whole = bertology.record(encoder, corpus, ["hidden"])["hidden"]

for layer in range(encoder.layers):
    moved: list[str] = []
    for head in range(encoder.heads):
        scale = torch.ones(encoder.layers, encoder.heads)
        scale[layer, head] = 0.0
        gated = bertology.record(encoder.gated(Gates(scale=scale)), corpus, ["hidden"])["hidden"]
        change = np.mean(
            [np.linalg.norm(a[-1] - b[-1]) / np.linalg.norm(a[-1]) for a, b in zip(whole, gated, strict=True)]
        )
        moved.append(f"{change:.3f}")
    print(f"layer {layer + 1}:", *moved)
