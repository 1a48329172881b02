"""Which heads attend to the previous token more than an untrained model? Usage: previous_token_heads.py [MODEL]."""

import sys

import bertology
from bertology.results.shapes import HeadGrid

model = sys.argv[1] if len(sys.argv) > 1 else "mini"
corpus = bertology.corpus(
    [
        "The old man the boats.",
        "Time flies like an arrow; fruit flies like a banana.",
        "I went to the store. At the store, I bought fresh strawberries.",
        "Not all who wander are lost.",
    ]
)
grid = bertology.run("attention/targets", model, corpus).data
assert isinstance(grid, HeadGrid)
measure = "attention to previous token (no special tokens)"
values, untrained = grid.measures[measure], grid.baselines["untrained model"][measure]
heads = [bertology.Head(layer, head) for layer in range(values.shape[0]) for head in range(values.shape[1])]
for head in sorted(heads, key=lambda head: -values.value[head])[:3]:
    verdict = "above" if values[head].clearly_above(untrained[head]) else "not above"
    print(f"head {head}: {values[head]}, {verdict} the untrained model, {untrained[head]}")
