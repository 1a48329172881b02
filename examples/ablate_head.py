"""How much does the last layer change when one head is set to zero? Usage: ablate_head.py [MODEL]."""

import sys

import numpy as np
import torch

import bertology
from bertology.encoder.attention_hook import Gates
from bertology.encoder.encoder import TaskEncoder

encoder = bertology.load(sys.argv[1] if len(sys.argv) > 1 else "mini")
assert isinstance(encoder, TaskEncoder)
corpus = bertology.corpus(["The keys to the cabinet are on the table.", "It is raining again."])
original = bertology.record(encoder, corpus, ["hidden"])["hidden"]

for layer in range(encoder.layers):
    changes: list[str] = []
    for head in range(encoder.heads):
        scale = torch.ones(encoder.layers, encoder.heads)
        scale[layer, head] = 0.0
        ablated = bertology.record(encoder.with_gates(Gates(scale=scale)), corpus, ["hidden"])["hidden"]
        norms = [np.linalg.norm(a[-1] - b[-1]) / np.linalg.norm(a[-1]) for a, b in zip(original, ablated, strict=True)]
        changes.append(f"{np.mean(norms):.3f}")
    print(f"layer {layer + 1}:", *changes)
