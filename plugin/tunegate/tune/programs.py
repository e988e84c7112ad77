"""Programs that the engine starts: it knows their protocol, never their insides."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple

from tunegate.system.nvidia.cuda_toolkit import cuda_variables
from tunegate.system.nvidia.gpus import variables_for, visible_gpus
from tunegate.system.processes import interpreter

SHARED_MEMORY = "TUNEGATE_SHARED_MEMORY_BYTES"
"""The variable that tells a child how much shared memory a block of a kernel may use."""
USUAL_SHARED_MEMORY = 48 * 1024
"""What every card has."""
_LIMIT_SECONDS = 120.0
_LEAST_CAPABILITY = 8.0


class Programs(NamedTuple):
    """The modules of a compiler that run as child processes. `searcher` answers the requests of a
    search in `tune/protocol.py`, `worker` builds and times a `Measure`. `shared_memory` tries a
    kernel on the device, and prints the bytes of shared memory that a block may use."""

    searcher: str
    worker: str
    shared_memory: str


@functools.cache
def gpu_variables(shared_memory: str) -> Mapping[str, str]:
    """Returns the variables of children that choose kernels for the first visible GPU. A block may
    use more shared memory than the usual 48 KB where the program `shared_memory` has seen that it
    works there; it is asked once."""
    gpus = visible_gpus()
    # sm_75 has 16 KB more, not worth a trial in each run, and CUDA 13 knows no older card.
    if not gpus or float(gpus[0].compute_capability) < _LEAST_CAPABILITY:
        return {}
    variables = {**cuda_variables(), **variables_for(gpus[0])}
    done = interpreter.ask(shared_memory, variables=variables, limit_seconds=_LIMIT_SECONDS)
    said = b"" if done is None or done.returncode else done.stdout.strip()
    return {SHARED_MEMORY: said.decode()} if said.isdigit() else {}
