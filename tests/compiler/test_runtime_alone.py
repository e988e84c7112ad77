from __future__ import annotations

import json
import subprocess
import sys

IMPORTED = """
import json, os, sys
from pathlib import Path
import tvm_ffi.core as core
asked, before = [], core._object_type_key_to_index
def ask(key):
    asked.append((key, before(key)))
    return asked[-1][1]
core._object_type_key_to_index = ask
from tunegate.compiler.runtime_alone import import_runtime, set_threads
set_threads(3)
import_runtime()
print(json.dumps({
    "has_compiler": "libtvm_compiler" in Path("/proc/self/maps").read_text(),
    "threads": os.environ["TVM_NUM_THREADS"],
    "asked": len(asked),
    "unknown": [key for key, index in asked if index is None],
    "is_as_before": core._object_type_key_to_index is ask,
    "tensor": sys.modules["tvm"].runtime.tensor([1.5]).numpy().tolist(),
}))
"""


def test_types_of_the_compiler_are_not_asked_for_and_all_else_is_as_ever() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert found.pop("asked") > 0
    assert found == {
        "has_compiler": False,
        "threads": "3",
        "unknown": [],
        "is_as_before": True,
        "tensor": [1.5],
    }
