"""Corpora: reading files, making corpora from Python objects, generating them, and deriving probing tasks.

The package is also a function: `bertology.corpus(data, ...)` makes a corpus from Python objects, as `build_corpus` in
`bertology.corpus.from_objects` describes.
"""

from __future__ import annotations

from bertology.lazy import make_callable

make_callable(__name__, "bertology.corpus.from_objects", "build_corpus")
