"""The build hook: the views are built by Vite whenever the package is built or installed, editable or not."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ViewsBuildHook(BuildHookInterface):
    """Runs frontend/build.py where it lies; a source distribution made into a wheel has it too."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the assets before files are collected."""
        if self.target_name != "wheel":
            return
        specification = importlib.util.spec_from_file_location("views_build", Path(self.root, "frontend", "build.py"))
        assert specification is not None and specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        try:
            built = module.build()
        except (RuntimeError, OSError) as error:
            if version != "editable":
                raise
            # Everything but the views works without them, and `bertology view` says how to build them.
            self.app.display_warning(f"The views were not built: {error}")
        else:
            self.app.display_info("views built" if built else "views are up to date")
