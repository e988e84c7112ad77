"""Compiles a tiny function: a broken installation of the compiler does not survive it.

It runs as a child (`python -m`): if tvm-ffi does not match, the database write kills the process.
"""

import sys
from pathlib import Path

import tvm
from tvm import te
from tvm.s_tir.meta_schedule import database

from tunegate.system.output.temporary_folder import TemporaryFolder


def main() -> int:
    a = te.placeholder((16, 16), name="a")
    double = te.compute((16, 16), lambda i, j: a[i, j] * 2.0, name="doubled")
    module = tvm.IRModule({"main": te.create_prim_func([a, double])})
    target = tvm.target.Target({"kind": "llvm", "num-cores": 1})
    with TemporaryFolder() as directory:
        stored_database = database.JSONDatabase(work_dir=str(Path(directory)))
        stored_database.commit_workload(module)
    tvm.compile(module, target=target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
