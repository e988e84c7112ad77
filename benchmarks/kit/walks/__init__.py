"""What the benchmarks share. With the first import the tests' builders of models are found too."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))
