"""Inputs of candidates: the same values for all of a task in one run, made once in each worker."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import tvm

from tunegate.edges.run_seed import derived
from tunegate.engine.protocol import TensorArgument


@lru_cache(maxsize=1)
def sample_inputs(wanted: tuple[TensorArgument, ...], device: Any, seed: int) -> tuple[Any, ...]:
    """Tensors on the device. A layer can have hundreds of megabytes of weights, and making them
    take longer than building and timing its candidate; so those of the last task are kept, until
    `sample_inputs.cache_clear()`."""
    return tuple(
        sample(argument, device, derived(seed, place)) for place, argument in enumerate(wanted)
    )


def sample(argument: TensorArgument, device: Any, seed: int) -> Any:
    """Random values between -1 and 1; integers are 0, because any
    other index could be out of range."""
    if np.dtype(argument.dtype).kind != "f":
        return tvm.runtime.tensor(np.zeros(argument.shape, argument.dtype), device)
    random = np.random.default_rng(seed)
    values = random.random(argument.shape, dtype=np.float32)
    values *= 2
    values -= 1
    return tvm.runtime.tensor(values.astype(argument.dtype, copy=False), device)
