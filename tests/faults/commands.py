"""Commands that are put under faults: small enough for seconds, and each with what it leaves behind."""

from __future__ import annotations

from pathlib import Path

from tests.planted_claims import write_claims

from warm_processes import BERTOLOGY

COMMANDS = ("record", "claims", "report", "atlas", "finetune")


def write_inputs(folder: Path) -> None:
    """Write the claims and the labelled sentences that the commands read."""
    write_claims(folder / "claims.toml")
    lines = [f"{'the cat sat' if n % 2 else 'a dog ran'} on mat {n}\t{'cat' if n % 2 else 'dog'}\n" for n in range(60)]
    (folder / "train.tsv").write_text("sentence\tlabel\n" + "".join(lines))


def command(name: str, inputs: Path, kept: Path, output: Path, *, limit: int = 12, model: str = "tiny") -> list[str]:
    """A command whose store, or directory, is in `kept`, and whose page is written to `output`."""
    judged = ["--limit", str(limit), "--claims", str(inputs / "claims.toml"), "--max-unknown-tokens", "1"]
    # An atlas has one model: each takes seconds to start a process of its own.
    recording, tuned = str(kept / "recording"), str(kept / "model")
    # The built-in treebank is recorded before a signal could arrive.
    texts = "english" if limit <= 356 else f"generated:main_auxiliary@7:{limit}"
    store, file = ["--store", str(kept / "store")], ["-o", str(output / f"{name}.html")]
    arguments = {
        "record": [model, texts, "--limit", str(limit), "--sites", "attention,hidden", "-o", recording],
        "claims": [model, *judged, *store],
        "report": [model, *judged, *store, *file],
        "atlas": [model, *judged, *store, *file],
        "finetune": [model, str(inputs / "train.tsv"), "--task", "sentence", "--epochs", "3", "-o", tuned],
    }  # fmt: skip
    return [*BERTOLOGY, name, *arguments[name]]


def last_line(text: str) -> str:
    """The last line of what a command printed, without what a progress bar overwrote."""
    lines = [line for line in text.replace("\r", "\n").splitlines() if line.strip()]
    return lines[-1] if lines else ""
