"""The shards of a recording in its folder: the missing ones are recorded, here or by workers; corrupt ones repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from bertology.arrays import Array
from bertology.engines.engine import Engine
from bertology.progress import MessageCallback, ProgressCallback, describe_step
from bertology.recording.plan import RecordingPlan
from bertology.recording.recording_pass import RecordingPass, reads_any_attention, record_batches
from bertology.recording.shards import ShardReader, write_shard
from bertology.recording.sites import Site
from bertology.recording.store import RecordingFolder
from bertology.store_paths import StorePath

if TYPE_CHECKING:
    from bertology.recording.incremental_plan import IncrementalPlan


class ShardWriter:
    """Records missing shards into a folder, and repeats corrupt ones; workers of an engine have a copy of it."""

    def __init__(
        self, recording_pass: RecordingPass, plan: RecordingPlan, sites: Sequence[Site], folder: RecordingFolder
    ) -> None:
        self._recording_pass = recording_pass
        self.plan = plan
        self.sites = sites
        self.folder = folder

    @property
    def name(self) -> str:
        """The model that is recorded."""
        return self._recording_pass.encoder.name

    def files(self) -> dict[str, dict[int, StorePath]]:
        """The finished shards of each site by index; what other processes left half-written is removed first."""
        for site in self.sites:
            self.folder.remove_leftovers(site.storage_key)
        return {site.storage_key: self.folder.shards(site.storage_key) for site in self.sites}

    def missing(self, files: Mapping[str, Mapping[int, StorePath]]) -> dict[int, list[Site]]:
        """The sites that are missing in each unfinished shard."""
        by_shard = {
            shard: [site for site in self.sites if shard not in files[site.storage_key]]
            for shard in range(len(self.plan.shards))
        }
        return {shard: sites for shard, sites in by_shard.items() if sites}

    def record(
        self, progress: ProgressCallback | None, notify: MessageCallback | None, engine: Engine | None = None
    ) -> dict[str, ShardReader]:
        """Record all missing shards, here or by the workers of an engine; returns a reader for each site."""
        files = self.record_missing(progress, notify, engine)
        return {
            site.storage_key: ShardReader(files[site.storage_key], self.plan.order, self._repair_function(site))
            for site in self.sites
        }

    def record_missing(
        self,
        progress: ProgressCallback | None,
        notify: MessageCallback | None,
        engine: Engine | None = None,
        is_chosen: Callable[[int], bool] = lambda shard: True,
    ) -> dict[str, dict[int, StorePath]]:
        """Record the missing shards, or those of them that are chosen; returns the finished shards of each site."""
        plan, folder, files = self.plan, self.folder, self.files()
        all_missing, n_shards = self.missing(files), len(plan.shards)
        missing = {shard: sites for shard, sites in all_missing.items() if is_chosen(shard)}
        if notify and not all_missing:
            notify(f"Using the stored recording of {len(plan.inputs)} inputs ({folder.path}).")
        elif notify and len(all_missing) < n_shards:
            n_finished = n_shards - len(all_missing)
            notify(f"Resuming the recording: {n_finished} of {n_shards} shards are finished ({folder.path}).")
        token_progress = TokenProgress(plan, plan.count_tokens(missing), progress)
        if engine is None:
            for shard, sites in missing.items():
                for key, file in self.record_shard(shard, sites, token_progress):
                    files[key][shard] = file
        elif missing:
            from bertology.recording.engine_shards import record_in_workers

            record_in_workers(self, missing, engine, token_progress, notify)
            files = self.files()
        return files

    def record_shard(
        self, shard_index: int, sites: Sequence[Site], token_progress: TokenProgress
    ) -> Iterator[tuple[str, StorePath]]:
        """Record some sites of one shard; yields the key and the file of each site."""
        recorded: dict[str, list[Array]] = {site.storage_key: [] for site in sites}
        needs_attention = reads_any_attention(self.sites)
        batches = self.plan.shards[shard_index]
        for indices, by_site in record_batches(self._recording_pass, batches, sites, needs_attention=needs_attention):
            for key, arrays in by_site.items():
                recorded[key].extend(arrays)
            token_progress.add(indices)
        order = self.plan.order[shard_index]
        for key in list(recorded):
            yield key, write_shard(self.folder.path / key, shard_index, order, recorded.pop(key))

    def _repair_function(self, site: Site) -> Callable[[int, StorePath], StorePath]:
        def repair(shard_index: int, corrupt_file: StorePath) -> StorePath:
            with suppress(OSError):
                corrupt_file.unlink(missing_ok=True)
            token_progress = TokenProgress(self.plan, 0, None)
            return dict(self.record_shard(shard_index, [site], token_progress))[site.storage_key]

        return repair


class TokenProgress:
    """Reports the number of recorded tokens to a progress callback."""

    def __init__(self, plan: RecordingPlan | IncrementalPlan, n_tokens: int, progress: ProgressCallback | None) -> None:
        self._plan = plan
        self._progress = progress
        self.done = 0
        self.total = n_tokens
        if progress:
            progress(0, n_tokens)

    def add(self, indices: Sequence[int]) -> None:
        """Count the tokens of these inputs as recorded."""
        self.done += sum(len(self._plan.inputs[i].tokens) for i in indices)
        if self._progress:
            self._progress(self.done, self.total)

    def describe(self, detail: str) -> None:
        """Show a detail with the progress, such as the number of finished shards."""
        if self._progress:
            describe_step(self._progress, detail)
