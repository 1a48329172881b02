"""Import what commands need; imported by the process whose forks are the `warm_processes`."""

from __future__ import annotations

import importlib
import threading

import torch

from bertology.analyses import registry
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from bertology.recording.recorder import record
from forks import renew_thread_pool_in_forks

MODULES = (
    "bertology.atlas.build", "bertology.claims.run", "bertology.cli.main", "bertology.server.serve",
    "bertology.training.finetune", "bertology.views.report.build", "rich.console", "rich.table",
)  # fmt: skip

torch.set_num_threads(1)
renew_thread_pool_in_forks()
for module in MODULES:
    importlib.import_module(module)
registry.load_all()
record(load("tiny"), load_corpus("english", limit=1), ["attention", "hidden"])
assert threading.active_count() == 1, "a process with threads cannot be forked"
