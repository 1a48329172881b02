"""Which heads look one piece back, and is that more than chance? Give a model as argument."""

import sys

import bertology

model = sys.argv[1] if len(sys.argv) > 1 else "mini"
corpus = bertology.read_text(
    "The old man the boats.",
    "Time flies like an arrow; fruit flies like a banana.",
    "I went to the store. At the store, I bought fresh strawberries.",
    "Not all who wander are lost.",
)
result = bertology.run("attention/targets", model, corpus)
measure = "to previous, ordinary"
found, chance = result.data.measures[measure], result.data.baselines["random weights"][measure]
for layer, head in sorted(
    ((layer, head) for layer in range(found.shape[0]) for head in range(found.shape[1])),
    key=lambda place: -found.value[place],
)[:3]:
    verdict = "above" if found[layer, head].clearly_above(chance[layer, head]) else "not above"
    print(f"head {bertology.Head(layer, head)}: {found[layer, head]}, {verdict} random weights {chance[layer, head]}")
