"""Commands that are put under faults: small enough for seconds, and each with what it leaves behind."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENVIRONMENT = os.environ | {
    "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests"), str(ROOT)]),
    "OMP_NUM_THREADS": "1",
    "COLUMNS": "200",
}
BERTOLOGY = [sys.executable, "-m", "bertology"]
COMMANDS = ("record", "claims", "report", "atlas", "finetune")

CLAIMS = """
citation = "Nobody 2026. Planted."

[[claim]]
id = "entropy-above-zero"
statement = "The last layer has a higher entropy than 0."
section = "1"
published_value = "none"
analysis = "attention/entropy"
test = { kind = "greater", left = { measure = "entropy", layers = { last = 1 } }, right = 0.0 }

[[claim]]
id = "some-head-is-narrow"
statement = "A head gives the next token more than half."
section = "1"
published_value = "none"
analysis = "attention/targets"
unit = "percent"
test = { kind = "any head", measure = "attention to next token", threshold = 0.5, baselines = ["uniform attention"] }
"""


def write_inputs(folder: Path) -> None:
    """Write the claims and the labelled sentences that the commands read."""
    (folder / "claims.toml").write_text(CLAIMS)
    lines = [f"{'the cat sat' if n % 2 else 'a dog ran'} on mat {n}\t{'cat' if n % 2 else 'dog'}\n" for n in range(60)]
    (folder / "train.tsv").write_text("sentence\tlabel\n" + "".join(lines))


def command(name: str, inputs: Path, kept: Path, output: Path, *, limit: int = 12) -> list[str]:
    """A command whose store, or directory, is in `kept`, and whose page is written to `output`."""
    judged = ["--limit", str(limit), "--claims", str(inputs / "claims.toml"), "--max-unknown-tokens", "1"]
    recording, model = str(kept / "recording"), str(kept / "model")
    # The built-in treebank is recorded before a signal could arrive.
    texts = "english" if limit <= 356 else f"generated:main_auxiliary@7:{limit}"
    store, file = ["--store", str(kept / "store")], ["-o", str(output / f"{name}.html")]
    arguments = {
        "record": ["tiny", texts, "--limit", str(limit), "--sites", "attention,hidden", "-o", recording],
        "claims": ["tiny", *judged, *store],
        "report": ["tiny", *judged, *store, *file],
        "atlas": ["tiny", "random:tiny@1", *judged, *store, *file],
        "finetune": ["tiny", str(inputs / "train.tsv"), "--task", "sentence", "--epochs", "3", "-o", model],
    }  # fmt: skip
    return [*BERTOLOGY, name, *arguments[name]]


def last_line(text: str) -> str:
    """The last line of what a command printed, without what a progress bar overwrote."""
    lines = [line for line in text.replace("\r", "\n").splitlines() if line.strip()]
    return lines[-1] if lines else ""
