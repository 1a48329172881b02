"""RoBERTa (Liu et al. 2019) and the models of its architecture, XLM-RoBERTa and CamemBERT."""

from __future__ import annotations

from bertology.encoder.families import ModelFamily, position_offset_after_padding
from bertology.encoder.families.bert import BERT_LAYER

FAMILY = ModelFamily(
    name="RoBERTa",
    model_types=("roberta", "xlm-roberta", "camembert"),
    layer_classes=("RobertaLayer", "XLMRobertaLayer", "CamembertLayer"),
    layer=BERT_LAYER,
    position_offset=position_offset_after_padding,
    prunable=True,
)
