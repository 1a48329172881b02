"""The heads on top of an encoder: what each model class of transformers predicts, and in which field it returns it."""

from __future__ import annotations

Fields = tuple[tuple[str, str], ...]

OUTPUTS: dict[str, Fields] = {
    "ForMaskedLM": (("mlm", "logits"),),
    "LMHeadModel": (("lm", "logits"),),
    "ForCausalLM": (("lm", "logits"),),
    "ForNextSentencePrediction": (("nsp", "logits"),),
    "ForSequenceClassification": (("label", "logits"),),
    "ForTokenClassification": (("token", "logits"),),
    "ForMultipleChoice": (("choice", "logits"),),
    "ForQuestionAnswering": (("answer_start", "start_logits"), ("answer_end", "end_logits")),
}
PRETRAINING: dict[str, Fields] = {
    "BertForPreTraining": (("mlm", "prediction_logits"), ("nsp", "seq_relationship_logits")),
    "AlbertForPreTraining": (("mlm", "prediction_logits"), ("sop", "sop_logits")),
    "ElectraForPreTraining": (("replaced", "logits"),),
}


def fields_of(kind: type) -> Fields:
    """(our name of the head, transformers' name of its scores) for each head of a model class; none for a bare one."""
    by_suffix = next((fields for suffix, fields in OUTPUTS.items() if kind.__name__.endswith(suffix)), ())
    return PRETRAINING.get(kind.__name__, by_suffix)
