"""Both runtimes see one memory, and compiled code gets what is aligned."""

from __future__ import annotations

import numpy as np

from tunegate_hybrid.plan_file import PartTensor
from tunegate_hybrid.tensors import Tensors


def test_room_is_one_memory_for_both() -> None:
    tensors = Tensors()
    room = tensors.room_for(PartTensor("t", "float32", (3, 5)))
    room[...] = 7
    np.testing.assert_array_equal(tensors.compiled["t"].numpy(), room)
    assert tensors.arrays["t"] is room
    assert room.ctypes.data % 64 == 0


def test_what_lies_badly_is_copied_for_compiled_code_only() -> None:
    tensors = Tensors()
    for array in (np.arange(12.0).reshape(3, 4).T, np.arange(9, dtype=np.int64)[1:], np.float32(3)):
        tensors.put("t", np.asarray(array))
        np.testing.assert_array_equal(tensors.compiled["t"].numpy(), array)
    tensors.put("text", np.array(["a", "b"]))
    assert "text" not in tensors.compiled


def test_a_kernels_output_is_an_array_without_a_copy() -> None:
    tensors = Tensors()
    room = tensors.room_for(PartTensor("t", "bool", (2,)))
    tensors.put_compiled("u", tensors.compiled["t"])
    room[...] = [True, False]
    assert tensors.arrays["u"].tolist() == [True, False]
