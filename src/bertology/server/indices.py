"""The indices of links and of states that jobs build in the store, opened when they are complete."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertology.recording.plan import RecordingConfig

if TYPE_CHECKING:
    from bertology.analyses.contextual_neighbours import NeighbourIndex
    from bertology.analyses.link_index.index import LinkIndex
    from bertology.corpus.corpus import Corpus
    from bertology.encoder.encoder import TaskEncoder

INDEX_CONFIG = RecordingConfig(overflow="skip")
"""Texts that are too long for the model are not in an index; the summary of its job counts them."""
MAX_OPEN = 4


class Indices:
    """Indices that are complete in the store, the last few of which are kept open."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._open: OrderedDict[tuple[str, str, str], Any] = OrderedDict()
        self._lock = threading.Lock()

    def links(self, encoder: TaskEncoder, corpus: Corpus) -> LinkIndex | None:
        """The links of all heads of a model; None until the job has built them."""
        from bertology.analyses.link_index.index import LinkIndex
        from bertology.analyses.link_index.site import strongest_links_site

        return self._find("links", encoder, corpus, strongest_links_site(), LinkIndex)

    def states(self, encoder: TaskEncoder, corpus: Corpus) -> NeighbourIndex | None:
        """The states of all words at all layers; None until the job has recorded them."""
        from bertology.analyses.contextual_neighbours import NeighbourIndex

        return self._find("states", encoder, corpus, "hidden.words", NeighbourIndex)

    def _find(self, kind: str, encoder: TaskEncoder, corpus: Corpus, site: Any, build: Any) -> Any:
        from bertology.recording.recorder import find_recording

        key = kind, encoder.name, corpus.name
        with self._lock:
            if key not in self._open:
                recording = find_recording(encoder, corpus, [site], config=INDEX_CONFIG, store=self._store)
                if recording is None:
                    return None
                self._open[key] = build(recording)
            self._open.move_to_end(key)
            while len(self._open) > MAX_OPEN:
                self._open.popitem(last=False)
            return self._open[key]
