"""Models in memory: every kind gives the encoder of its weights, and the model that was given stays as it was."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import transformers

import tiny_models
from bertology.encoder.encoder import Encoder
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.load import as_encoder, load
from bertology.errors import Refusal
from tiny_models import ALL_FAMILIES, ALL_KINDS, TEXTS


def in_memory(name: str = "bert", kind: str = "Model") -> tuple[Any, Any]:
    return tiny_models.model(name, kind), tiny_models.hf_tokenizer(name)


def final_states(encoder: Encoder, tokeniser: Encoder | None = None) -> torch.Tensor:
    with torch.no_grad():
        batch = tiny_models.batch((tokeniser or encoder).tokenise(tiny_models.inputs(TEXTS)))
        return encoder.forward(batch, hidden=True).hidden_states[-1][batch.attention_mask.bool()]


def module_state(model: Any) -> list[Any]:
    """All that wrapping a model could change: hooks, training mode, methods of instances, configuration."""
    modules = [
        (
            path,
            module.training,
            list(module._forward_hooks.values()),
            list(module._forward_pre_hooks.values()),
            sorted(key for key in vars(module) if key in {"forward", "head_changes"}),
        )
        for path, module in model.named_modules()
    ]
    return [*modules, model.config._attn_implementation, model.config.to_dict()]


@pytest.mark.parametrize(("name", "kind"), ALL_KINDS)
def test_a_model_in_memory_equals_the_same_model_loaded_from_a_directory(name: str, kind: str) -> None:
    model, tokenizer = in_memory(name, kind)
    encoder = load(model, tokenizer)
    assert encoder.task_heads == tiny_models.encoder(name, kind).task_heads
    loaded = tiny_models.encoder(name, kind)
    # The tokeniser that transformers loads from a directory of Qwen2 splits words in its own way.
    torch.testing.assert_close(final_states(encoder, loaded), final_states(loaded), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("name", ALL_FAMILIES)
def test_the_model_that_is_given_is_unchanged(name: str, implementation: str) -> None:
    model, tokenizer = in_memory(name)
    if name not in {"mpnet", "deberta-v2"}:
        model.set_attn_implementation(implementation)
    model.train()
    calls: list[int] = []

    def count(module: Any, args: Any, output: Any) -> None:
        calls.append(1)

    model.register_forward_hook(count)
    before, weights = module_state(model), {key: value.clone() for key, value in model.state_dict().items()}
    encoder = load(model, tokenizer)
    final_states(encoder)
    if name != "albert":
        assert isinstance(encoder, HuggingFaceEncoder)
        final_states(encoder.without("1-1"))
    assert module_state(model) == before
    assert all(torch.equal(value, weights[key]) for key, value in model.state_dict().items())


def test_an_encoder_follows_the_weights_of_a_model_that_is_trained_further() -> None:
    model, tokenizer = in_memory("bert")
    encoder = load(model, tokenizer)
    fingerprint, states = encoder.fingerprint, final_states(encoder)
    with torch.no_grad():
        model.encoder.layer[0].output.dense.weight.add_(0.1 * torch.randn(32, 48))
    assert encoder.fingerprint != fingerprint
    assert (final_states(encoder) - states).abs().max() > 1e-3


def test_another_dtype_is_a_copy() -> None:
    model, tokenizer = in_memory("bert")
    encoder = load(model, tokenizer, dtype="bfloat16")
    assert isinstance(encoder, HuggingFaceEncoder)
    assert next(encoder.model.parameters()).dtype == torch.bfloat16
    assert next(model.parameters()).dtype == torch.float32
    double = load(model.double(), tokenizer)
    assert final_states(double).dtype == torch.float64


def test_the_tokenizer_is_read_where_the_model_was_loaded_from() -> None:
    folder = tiny_models.directory("bert")
    encoder = load(transformers.AutoModel.from_pretrained(folder))
    assert encoder.fingerprint == tiny_models.encoder("bert").fingerprint
    with pytest.raises(Refusal, match=r"was given without a tokenizer.*Pass both: bertology.load\(model, tokenizer\)"):
        load(tiny_models.model("bert"))


def test_a_pipeline_is_its_model_and_tokenizer() -> None:
    model, tokenizer = in_memory("bert", "ForSequenceClassification")
    encoder = load(transformers.pipeline("text-classification", model=model, tokenizer=tokenizer))
    assert encoder.task_heads == {"label"}


def lora(model: Any, **options: Any) -> Any:
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(r=4, target_modules=["query", "value", "dense"], init_lora_weights=False, **options)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return peft.get_peft_model(model, config).eval()


def test_the_adapters_of_a_peft_model_are_merged_in_a_copy() -> None:
    model, tokenizer = in_memory("bert")
    plain = final_states(load(copy.deepcopy(model), tokenizer))
    adapted = lora(model)
    before = {key: value.clone() for key, value in adapted.state_dict().items()}
    encoder = load(adapted, tokenizer)
    assert isinstance(encoder, HuggingFaceEncoder)
    batch = encoder.batch(TEXTS)
    with torch.no_grad():
        expected = adapted(batch.input_ids, attention_mask=batch.attention_mask, token_type_ids=batch.token_type_ids)
    mask = batch.attention_mask.bool()
    torch.testing.assert_close(final_states(encoder), expected.last_hidden_state[mask], atol=1e-4, rtol=1e-4)
    assert (final_states(encoder) - plain).abs().max() > 1e-2
    after = adapted.state_dict()
    assert before.keys() == after.keys() and all(torch.equal(value, after[key]) for key, value in before.items())
    with adapted.disable_adapter():
        torch.testing.assert_close(final_states(load(adapted, tokenizer)), plain)


def test_adapters_that_transformers_added_are_merged_in_a_copy() -> None:
    peft = pytest.importorskip("peft")
    model, tokenizer = in_memory("bert")
    config = peft.LoraConfig(r=4, target_modules=["query", "value", "dense"], init_lora_weights=False)
    model.add_adapter(config)
    model.eval()
    encoder = load(model, tokenizer)
    assert isinstance(encoder, HuggingFaceEncoder)
    assert not any("lora" in name for name, _ in encoder.model.named_parameters())
    batch = encoder.batch(TEXTS)
    with torch.no_grad():
        expected = model(batch.input_ids, attention_mask=batch.attention_mask, token_type_ids=batch.token_type_ids)
    mask = batch.attention_mask.bool()
    torch.testing.assert_close(final_states(encoder), expected.last_hidden_state[mask], atol=1e-4, rtol=1e-4)
    assert any("lora" in name for name, _ in model.named_parameters())


def test_virtual_tokens_of_peft_are_refused() -> None:
    peft = pytest.importorskip("peft")
    model, tokenizer = in_memory("gpt2", "LMHeadModel")
    config = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2)
    with pytest.raises(Refusal, match="adds virtual tokens to the input"):
        load(peft.get_peft_model(model, config), tokenizer)


def test_a_sentence_transformer_is_its_transformer() -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    modules = pytest.importorskip("sentence_transformers.sentence_transformer.modules")
    transformer = modules.Transformer(str(tiny_models.directory("bert")))
    pooling = modules.Pooling(32)
    model = sentence_transformers.SentenceTransformer(modules=[transformer, pooling], device="cpu")
    encoder = load(model)
    torch.testing.assert_close(final_states(encoder), final_states(tiny_models.encoder("bert")), atol=1e-5, rtol=1e-5)


def test_as_encoder_takes_every_form() -> None:
    model, tokenizer = in_memory("bert")
    encoder = as_encoder((model, tokenizer))
    assert as_encoder(encoder) is encoder
    assert as_encoder("tiny").fingerprint == load("tiny").fingerprint
    assert as_encoder(tiny_models.directory("bert")).fingerprint == tiny_models.encoder("bert").fingerprint
    static = load("random-vectors:8")
    assert as_encoder(static) is static


@pytest.mark.parametrize("value", [None, 3, ["mini"], {"model": "mini"}, ("tiny",), ("a", "b", "c"), b"mini", object()])
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(
        Refusal, match=r"A model was given as .*Expected a name or path, an encoder, a transformers model"
    ):
        as_encoder(value)


def test_models_and_tokenizers_that_do_not_fit_are_refused() -> None:
    model, tokenizer = in_memory("bert")
    for problem, arguments in (
        (r"has token ids up to \d+", (model, tiny_models.hf_tokenizer("roberta"))),
        ("The tokenizer of .* is str", (model, "tokenizer")),
        ("A tokenizer was given beside the name 'tiny'", ("tiny", tokenizer)),
        ("is an encoder already", (tiny_models.encoder("bert"), None)),
        ("A model was given as Linear", (torch.nn.Linear(2, 2), tokenizer)),
    ):
        with pytest.raises(Refusal, match=problem):
            load(*arguments)


def test_a_model_with_a_decoder_is_refused_in_memory_and_loaded_without_it(tmp_path: Any) -> None:
    config = tiny_models.ALL_FAMILIES["t5"].config(len(tiny_models.hf_tokenizer("t5")))
    config.decoder_start_token_id = 1
    model = transformers.T5ForConditionalGeneration(config)
    with pytest.raises(Refusal, match=r"has an encoder and a decoder.*Load it as transformers.T5EncoderModel"):
        load(model, tiny_models.hf_tokenizer("t5"))
    model.save_pretrained(tmp_path)
    tiny_models.hf_tokenizer("t5").save_pretrained(tmp_path)
    with pytest.warns(UserWarning, match=r"T5ForConditionalGeneration\) has a decoder, which is left out"):
        encoder = load(tmp_path)
    assert (encoder.layers, encoder.task_heads) == (2, frozenset())
