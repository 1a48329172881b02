"""A page that shows itself in notebooks, and can be saved or opened in a browser."""

from __future__ import annotations

import webbrowser
from abc import ABC, abstractmethod
from html import escape
from pathlib import Path

from bertology.results.whole_file import write_whole


class Shown(ABC):
    """Something that is looked at as one self-contained page."""

    height: int = 760

    @property
    @abstractmethod
    def title(self) -> str:
        """What stands above it."""

    @abstractmethod
    def html(self) -> str:
        """The page as text: self-contained, fetching nothing."""

    def content(self, suffix: str) -> bytes:
        """What a file of this suffix holds."""
        return self.html().encode()

    def save(self, path: str | Path) -> Path:
        """Write it to a file; one half written is never left."""
        target = Path(path)
        content = self.content(target.suffix)
        return write_whole(target, content)

    def open(self) -> Path:
        """Save it to a temporary file and show that in the browser."""
        import tempfile

        folder = Path(tempfile.mkdtemp(prefix="bertology-view-"))
        path = self.save(folder / "view.html")
        webbrowser.open(path.as_uri())
        return path

    def _repr_html_(self) -> str:
        """The page inside a frame of its own: no script of a notebook meets one of ours."""
        title = escape(self.title.encode("utf-8", "replace").decode("utf-8"), quote=True)
        return (
            f'<iframe srcdoc="{escape(self.html(), quote=True)}" sandbox="allow-scripts allow-downloads allow-modals" '
            f'style="width:100%;height:{self.height}px;border:0" title="{title}"></iframe>'
        )
