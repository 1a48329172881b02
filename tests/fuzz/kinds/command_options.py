"""Arguments of the command line: every option of every command and analysis with odd values."""

from __future__ import annotations

import io
import json
import os
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import typer

from bertology.analyses import registry
from bertology.cli import main
from bertology.errors import Refusal
from fuzz.kind import Files, Kind

VALUES = (
    "nan", "-nan", "inf", "-inf", "1e999", "-1", "0", "1", "2", "0.5", "-0.5", "9" * 20, "9" * 5000, "²", "٣", "1_0",
    "", " ", "x", "0x10", "True", "1e-400", "1,2", ",", "a\nb", "x" * 300, "x/" * 3000, "\ud800", "~nobody/x", "../x",
    "/", "/dev/null", "tiny", "random:tiny@1", "random:tiny@99999999999999999999", "random:", "static:tiny", "glove:",
    "@",
    "random-vectors:3@2", "circulant:²", "tasks:bigram_shift:english", "generated:agreement@1:5", "generated:x@-1:0",
    "mlp:2", "mlp:²", "rank:99999999999999", "1-1", "0-0", "1-99", "full", "2,full", "model#last9999", "model#²", "*",
    "[", "datasets:", "none", "auto", "all", "heads", "layers", "%s", "--", "=",
)  # fmt: skip
COMMANDS: dict[str, tuple[str, ...]] = {
    "run": ("attention/entropy", "--model", "tiny", "--no-store"),
    "record": ("tiny", "CORPUS", "--sites", "hidden", "-o", "recording"),
    "view": ("The cat sat.", "--model", "tiny"),
    "prune": ("tiny", "--heads", "1-1", "-o", "pruned"),
    "claims": ("tiny", "--paper", "raganato2018", "--no-store"),
    "finetune": ("tiny", "CORPUS", "--task", "token", "-o", "finetuned"),
    "store": (),
    "list": (),
    "new": ("analysis", "attention/x"),
}
SLOW_ANALYSES = ("interventions/", "features/", "heads/parsing", "probes/description", "geometry/tensor", "senses/")
CORPUS = """# text = Dogs bark.
1\tDogs\tdog\tNOUN\tNNS\t_\t2\tnsubj\t_\t_
2\tbark\tbark\tVERB\tVBP\t_\t0\troot\t_\tSpaceAfter=No
3\t.\t.\tPUNCT\t.\t_\t2\tpunct\t_\t_

"""


class CommandOptions(Kind):
    """One command with one or two options."""

    name = "options"
    seconds_per_case = 60.0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        group: Any = typer.main.get_command(main.app)
        self.flags = {
            name: [flag for p in command.params for flag in p.opts if flag.startswith("--") and flag != "--help"]
            for name, command in group.commands.items()
        }
        names = [analysis for analysis in registry.load_all() if not analysis.name.startswith(SLOW_ANALYSES)]
        self.analyses = {analysis.name: [f"--{o.flag}" for o in analysis.options.values()] for analysis in names}

    def make(self, rng: Random) -> Files:
        """The arguments as a list in JSON."""
        if rng.random() < 0.5:
            analysis = rng.choice(sorted(self.analyses))
            arguments = ["run", analysis, "--model", "tiny", "--corpus", "CORPUS", "--no-store"]
            flags = self.analyses[analysis] or ["--limit"]
        else:
            command = rng.choice(sorted(COMMANDS))
            arguments, flags = [command, *COMMANDS[command]], self.flags[command] or ["--x"]
        for _ in range(rng.choice((1, 1, 2))):
            arguments.append(f"{rng.choice(flags)}={_value(rng)}")
        return {"arguments.json": json.dumps(arguments).encode(), "corpus.conllu": (CORPUS * 6).encode()}

    def consume(self, folder: Path) -> None:
        """Run the command in the folder: status 0, 1 or 2, and a paragraph for 2."""
        corpus = str(folder / "corpus.conllu")
        arguments = [
            corpus if word == "CORPUS" else word for word in json.loads((folder / "arguments.json").read_text())
        ]
        out, err = io.StringIO(), io.StringIO()
        before, status = Path.cwd(), 0
        os.chdir(folder)
        try:
            with redirect_stdout(out), redirect_stderr(err), patch("sys.argv", ["bertology", *arguments]):
                main.main()
        except SystemExit as stop:
            status = int(stop.code or 0)
        finally:
            os.chdir(before)
        last = err.getvalue().strip().splitlines()[-1:]
        assert status in {0, 1, 2} and "Traceback" not in err.getvalue(), err.getvalue()
        if status == 2:
            assert last and last[0].startswith("bertology: "), err.getvalue()
            raise Refusal(last[0][:1000], "", "")


def _value(rng: Random) -> str:
    return str(rng.choice((rng.choice(VALUES), rng.choice(VALUES), rng.randint(-3, 12), rng.uniform(-1, 2))))
