"""Tests here share `planted_tasks.py`; pytest's importlib mode puts no test folder on the path, so this one is."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
