"""Files of pipelines, checked by the schema that their CI publishes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path


def require_valid(schema: str, files: Iterable[Path], *options: str) -> None:
    """`schema` is a name that check-jsonschema has built in."""
    check = Path(sys.executable).parent / "check-jsonschema"
    command = [str(check), "--builtin-schema", schema, *options, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
