"""All kinds of input that are fuzzed, by name."""

from __future__ import annotations

from fuzz.kind import Kind
from fuzz.kinds.atlases import Atlases
from fuzz.kinds.claim_files import ClaimFiles
from fuzz.kinds.command_options import CommandOptions
from fuzz.kinds.corpora import Corpora
from fuzz.kinds.finetuning_runs import FinetuningRuns
from fuzz.kinds.foreign_maps import ForeignMaps
from fuzz.kinds.model_folders import ModelFolders
from fuzz.kinds.recordings import Recordings
from fuzz.kinds.results import Results
from fuzz.kinds.server_requests import ServerRequests
from fuzz.kinds.vectors import Vectors

KINDS: dict[str, type[Kind]] = {
    kind.name: kind
    for kind in (
        Corpora,
        Recordings,
        ForeignMaps,
        Vectors,
        Results,
        ModelFolders,
        FinetuningRuns,
        ClaimFiles,
        Atlases,
        CommandOptions,
        ServerRequests,
    )
}
