"""`bertology prune`: a smaller model with the outputs of the full model with those heads set to zero."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import transformers

import planted_heads
import tiny_models
from bertology.analyses import registry
from bertology.analyses.run import RunInputs, run_analysis
from bertology.encoder.attention_hook import Gates
from bertology.encoder.load import load
from bertology.encoder.pruning import PrunedEncoder
from bertology.encoder.task_heads import save_pretrained
from command import bertology


def test_a_pruned_model_is_smaller_and_equals_the_gated_model(tmp_path: Path) -> None:
    folder = str(tiny_models.directory("bert", "ForMaskedLM"))
    completed = bertology("prune", folder, "--heads", "1-2, 2-1,2-4", "-o", str(tmp_path / "small"), "--json")
    assert completed.status == 0, completed.err
    assert "Removed 3 of 8 heads" in completed.err
    summary = json.loads(completed.out)
    assert (summary["removed"], summary["heads"], summary["model"]) == (3, 8, str(tmp_path / "small"))
    pruned, full = load(summary["model"]), tiny_models.encoder("bert", "ForMaskedLM")
    assert isinstance(pruned, PrunedEncoder)
    assert summary["removed_heads"] == ["1-2", "2-1", "2-4"] and summary["smaller"] is True
    assert summary["parameters_after"] == sum(weights.numel() for weights in pruned.model.parameters())
    # Four weight matrices and three biases per head.
    assert summary["parameters_before"] - summary["parameters_after"] == 3 * (4 * 32 * 8 + 3 * 8)
    low, high = summary["speed_up"]["quartiles"]
    assert 0 < low <= summary["speed_up"]["median"] <= high and summary["speed_up"]["rounds"] > 1
    assert "Time per text" in completed.err and "Plain transformers" in completed.err
    scale = torch.ones(2, 4)
    scale[0, 1] = scale[1, 0] = scale[1, 3] = 0
    batch = tiny_models.batch(full.tokenise(tiny_models.inputs()[:3]))
    with torch.no_grad():
        logits = pruned.forward(batch).logits["mlm"]
        expected = full.with_gates(Gates(scale=scale)).forward(batch).logits["mlm"]
    mask = batch.attention_mask.bool()
    torch.testing.assert_close(logits[mask], expected[mask], atol=1e-5, rtol=1e-5)


def test_without_json_the_directory_is_printed(tmp_path: Path) -> None:
    folder, pruned = str(tiny_models.directory("bert", "ForMaskedLM")), tmp_path / "small"
    completed = bertology("prune", folder, "--heads", "1-1", "-o", str(pruned))
    assert completed.status == 0 and completed.out.strip() == str(pruned)
    repeated = bertology("prune", folder, "--heads", "1-1", "-o", str(pruned))
    assert repeated.status == 2 and repeated.out == "" and "already exists" in repeated.err


def test_heads_that_cannot_be_removed_are_refused(tmp_path: Path) -> None:
    bert, albert = (str(tiny_models.directory(name, "ForMaskedLM")) for name in ("bert", "albert"))
    for model, heads, mention in (
        (bert, "3-1", "from 1-1 to 2-4"),
        (bert, "0-1", "from 1-1 to 2-4"),
        (bert, "first", "'first'"),
        (bert, "", "names the head ''"),
        (albert, "1-1", "separate weights"),
        ("random-vectors:8", "1-1", "no attention heads"),
    ):
        completed = bertology("prune", model, "--heads", heads, "-o", str(tmp_path / "small"))
        assert completed.status == 2 and completed.out == "", completed
        assert mention in completed.err and "Traceback" not in completed.err
    assert not (tmp_path / "small").exists()


def test_heads_that_share_projections_are_set_to_zero(tmp_path: Path) -> None:
    folder = str(tiny_models.directory("mpnet", "ForMaskedLM"))
    completed = bertology("prune", folder, "--heads", "1-1", "-o", str(tmp_path / "zeros"), "--json")
    assert completed.status == 0 and "neither smaller nor faster" in completed.err
    assert json.loads(completed.out)["smaller"] is False
    assert not isinstance(load(str(tmp_path / "zeros")), PrunedEncoder)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier that depends on one head, with results of gates and pruning."""
    folder = tmp_path_factory.mktemp("planted")
    encoder, corpus = planted_heads.single_head()
    save_pretrained(encoder, folder / "model")
    inputs = RunInputs(corpus, load(str(folder / "model")))
    for name, options in (
        ("head_gates", {"l0_penalties": "0,0.03", "steps": 50, "n_seeds": 1, "function_corpus": "none"}),
        ("head_pruning", {"rank_by": "gradient,ablation,random", "n_seeds": 1, "n_random_orders": 2}),
        ("head_importance", {}),
    ):
        result = run_analysis(registry.get(f"interventions/{name}"), inputs, {"sample_size": 0, **options})
        (folder / f"{name}.json").write_text(json.dumps(result.to_json()), "utf-8")
    return folder


@pytest.mark.parametrize(
    "source",
    [
        ("head_gates", "--order", "L0 penalty 0.03"),
        ("head_pruning", "--order", "ablation"),
        ("head_pruning", "--order", "gradient", "--keep", "1"),
    ],
)
def test_the_heads_of_a_result_are_removed_and_plain_transformers_is_as_accurate(
    planted: Path, source: tuple[str, ...], tmp_path: Path
) -> None:
    name, *options = source
    file, output = str(planted / f"{name}.json"), tmp_path / "pruned"
    completed = bertology("prune", str(planted / "model"), "--from", file, *options, "-o", str(output), "--json")
    assert completed.status == 0, completed.err
    summary = json.loads(completed.out)
    assert summary["removed"] == planted_heads.LAYERS * planted_heads.HEADS - 1
    assert str(planted_heads.PLANTED) not in summary["removed_heads"]
    model = transformers.AutoModelForSequenceClassification.from_pretrained(output).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(output)
    _, corpus = planted_heads.single_head()
    with torch.inference_mode():
        for example in corpus:
            logits = model(**tokenizer(example.segments[0].text, return_tensors="pt")).logits
            assert model.config.id2label[int(logits.argmax())] == example.label


def test_results_that_do_not_fit_are_refused(planted: Path, tmp_path: Path) -> None:
    model, other = str(planted / "model"), str(tiny_models.directory("bert", "ForMaskedLM"))
    gates, pruning, importance = (
        str(planted / f"{name}.json") for name in ("head_gates", "head_pruning", "head_importance")
    )
    all_kept = json.loads(Path(gates).read_text("utf-8"))
    all_kept["data"]["removal_orders"][0]["n_removed"] = 0
    (tmp_path / "all.json").write_text(json.dumps(all_kept), "utf-8")
    for arguments, mention in (
        ((model,), "given twice, or not at all"),
        ((model, "--heads", "1-1", "--from", gates), "given twice, or not at all"),
        ((model, "--heads", "1-1", "--keep", "3"), "given twice, or not at all"),
        ((model, "--from", importance), "orders no heads"),
        ((model, "--from", str(planted / "model" / "config.json")), "is not a result"),
        ((other, "--from", gates, "--order", "L0 penalty 0.03"), "is a result of"),
        ((other, "--from", gates, "--order", "L0 penalty 0.03", "--any-model"), "orders 12 heads"),
        ((model, "--from", pruning), "one of: gradient, ablation"),
        ((model, "--from", pruning, "--order", "confidence"), "none called 'confidence'"),
        ((model, "--from", str(tmp_path / "all.json"), "--order", "L0 penalty 0"), "keeps all heads"),
        ((model, "--from", pruning, "--order", "gradient", "--keep", "12"), "leaves nothing to remove"),
    ):
        completed = bertology("prune", *arguments, "-o", str(tmp_path / "small"))
        assert completed.status == 2 and mention in completed.err and "Traceback" not in completed.err, completed
    assert not (tmp_path / "small").exists()
