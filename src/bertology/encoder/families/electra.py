"""ELECTRA (Clark et al. 2020): BERT's layers; the embeddings may be narrower and are then projected."""

from __future__ import annotations

from bertology.encoder.families import ModelFamily
from bertology.encoder.families.bert import BERT_LAYER

FAMILY = ModelFamily(
    name="ELECTRA",
    model_types=("electra",),
    layer_classes=("ElectraLayer",),
    layer=BERT_LAYER,
    embeddings=("embeddings", "embeddings_project"),
    prunable=True,
    pretraining_heads=(("replaced", "logits"),),
)
