"""Build hook: builds the front-end of the views whenever the package is built or installed, also in editable mode."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ViewsBuildHook(BuildHookInterface):
    """Runs frontend/build.py, which source distributions contain as well."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the assets before hatchling collects files."""
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
            # Everything else works without the views, and `bertology view` explains how to build them.
            self.app.display_warning(f"The views were not built: {error}")
        else:
            self.app.display_info("views built" if built else "views are up to date")
