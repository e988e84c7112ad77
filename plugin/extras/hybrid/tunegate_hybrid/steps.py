"""One part of an inference under either runtime: what is prepared once, and what runs each time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tunegate_hybrid.plan_file import PartTensor, PlannedPart
from tunegate_hybrid.tensors import Tensors

PartStep = Callable[[], None]


def compiled_step(part: PlannedPart, machine: Any, tensors: Tensors) -> PartStep:
    """Returns the call of the part's kernels."""
    main = machine["main"]
    read = [tensor.name for tensor in part.inputs]
    made = [tensor.name for tensor in part.outputs]
    known, put = tensors.compiled, tensors.put_compiled

    def one() -> None:
        put(made[0], main(*[known[name] for name in read]))

    def several() -> None:
        for name, output in zip(made, main(*[known[name] for name in read]), strict=True):
            put(name, output)

    return one if len(made) == 1 else several


def onnx_step(part: PlannedPart, session: Any, tensors: Tensors) -> PartStep:
    """Returns the part's inference: into memory that is there already, where shapes are known."""
    if all(tensor.dtype for tensor in (*part.inputs, *part.outputs)):
        return _bound_step(part, session, tensors)
    read = [tensor.name for tensor in part.inputs]
    made = [tensor.name for tensor in part.outputs]
    numbers = {tensor.name for tensor in part.outputs if tensor.dtype}

    def run() -> None:
        outputs = session.run(made, {name: tensors.arrays[name] for name in read})
        for name, output in zip(made, outputs, strict=True):
            if name in numbers:
                tensors.put(name, output)
            else:
                tensors.arrays[name] = output

    return run


def _bound_step(part: PlannedPart, session: Any, tensors: Tensors) -> PartStep:
    binding = session.io_binding()
    lasting = [tensor.name for tensor in part.inputs if tensor.name in tensors.arrays]
    fresh = [tensor.name for tensor in part.inputs if tensor.name not in tensors.arrays]
    for name in lasting:
        binding.bind_cpu_input(name, tensors.arrays[name])
    for tensor in part.outputs:
        _bind_output(binding, tensor, tensors)
    loose = [(n, each.name) for n, each in enumerate(part.outputs) if not each.is_static]

    def run() -> None:
        for name in fresh:
            binding.bind_cpu_input(name, tensors.arrays[name])
        session.run_with_iobinding(binding)
        outputs = binding.get_outputs() if loose else ()
        for place, name in loose:
            tensors.arrays[name] = outputs[place].numpy()

    return run


def _bind_output(binding: Any, tensor: PartTensor, tensors: Tensors) -> None:
    if not tensor.is_static:
        binding.bind_output(tensor.name, "cpu")
        return
    array = tensors.room_for(tensor)
    binding.bind_output(tensor.name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
