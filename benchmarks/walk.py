"""How many modules does one command enter? Counted for `attention/entropy` and for one paper's claims.

Everything is imported first, so that a module counts only if one of its functions runs. Run:

    python benchmarks/walk.py           # --list prints the modules
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import pkgutil
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

import bertology

SENTENCES = """\
# text = The cat sat.
1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_
2\tcat\tcat\tNOUN\tNN\t_\t3\tnsubj\t_\t_
3\tsat\tsit\tVERB\tVBD\t_\t0\troot\t_\tSpaceAfter=No
4\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\t_

# text = A dog ran.
1\tA\ta\tDET\tDT\t_\t2\tdet\t_\t_
2\tdog\tdog\tNOUN\tNN\t_\t3\tnsubj\t_\t_
3\tran\trun\tVERB\tVBD\t_\t0\troot\t_\tSpaceAfter=No
4\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\t_

"""
COMMANDS = {
    "attention/entropy": (["run", "attention/entropy", "--model", "tiny"], 40),
    "claims of clark2019": (["claims", "tiny", "--paper", "clark2019", "--no-fill"], 60),
}
OPTIONAL = ("bertology.statistics.triton",)


def import_everything() -> None:
    for module in pkgutil.walk_packages(bertology.__path__, "bertology."):
        if not module.name.startswith(OPTIONAL):
            importlib.import_module(module.name)


def modules_entered(arguments: list[str]) -> dict[str, set[str]]:
    """The functions that one command runs, by module."""
    from bertology.cli.main import app

    entered: dict[str, set[str]] = {}

    def profile(frame: FrameType, event: str, _: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("bertology") and frame.f_code.co_name != "<module>":
            entered.setdefault(module, set()).add(frame.f_code.co_qualname)

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        sys.setprofile(profile)
        try:
            app(arguments, standalone_mode=False)
        except SystemExit:
            pass
        finally:
            sys.setprofile(None)
    return entered


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print the modules with their number of functions")
    options = parser.parse_args()
    import_everything()
    with tempfile.TemporaryDirectory() as directory:
        corpus = Path(directory) / "two.conllu"
        corpus.write_text(SENTENCES, "utf-8")
        for name, (arguments, limit) in COMMANDS.items():
            entered = modules_entered([*arguments, "--corpus", str(corpus), "--no-store"])
            functions = sum(map(len, entered.values()))
            print(f"{name}: {len(entered)} modules (at most {limit}), {functions} functions")
            if options.list:
                for module in sorted(entered):
                    print(f"  {module} {len(entered[module])}")


if __name__ == "__main__":
    main()
