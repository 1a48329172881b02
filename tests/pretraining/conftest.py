"""Put this directory on the path for `small_pretraining.py`: pytest's importlib mode does not."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
