"""CUDA's functions by ctypes, for small programs that ask the stand-in for its rules.

Such a program runs in a process of its own, because some errors stay for the life of a process.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

from tests.cuda_stand_in.toolchain import compiled

Pointer = ctypes.c_void_p
TO_DEVICE, TO_HOST, ON_DEVICE = 1, 2, 3
GLOBAL, RELAXED = 0, 2
NON_BLOCKING = 1
MAX_DYNAMIC_SHARED = 8

driver = ctypes.CDLL("libcuda.so.1", ctypes.RTLD_GLOBAL)
runtime = ctypes.CDLL("libcudart.so.13")


class _Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("padding", ctypes.c_char * 4), ("value", ctypes.c_int * 16)]


class _Config(ctypes.Structure):
    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", Pointer),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("attribute_count", ctypes.c_uint),
    ]


class Module:
    """A text, compiled and loaded. Its kernels are launched by name; an int stays an int."""

    def __init__(self, text: str, arch: str = "sm_90") -> None:
        self._handle = Pointer()
        image, self.log = compiled(text, [arch])
        self.error = driver.cuModuleLoadData(ctypes.byref(self._handle), image)

    def function(self, name: str) -> Pointer:
        found = Pointer()
        assert driver.cuModuleGetFunction(ctypes.byref(found), self._handle, name.encode()) == 0
        return found

    def launch(
        self,
        name: str,
        grid: int,
        block: int,
        *arguments: Any,
        shared: int = 0,
        stream: Pointer | None = None,
        cooperative: bool = False,
    ) -> int:
        attributes = (_Attribute * 1)()
        attributes[0].id, attributes[0].value[0] = 2, int(cooperative)
        config = _Config(
            (ctypes.c_uint * 3)(grid, 1, 1),
            (ctypes.c_uint * 3)(block, 1, 1),
            shared,
            stream,
            attributes,
            int(cooperative),
        )
        held = [ctypes.c_int(each) if isinstance(each, int) else each for each in arguments]
        places = (Pointer * len(held))(*[ctypes.cast(ctypes.byref(each), Pointer) for each in held])
        function = self.function(name)
        return int(driver.cuLaunchKernelEx(ctypes.byref(config), function, places, None))

    def allow_shared(self, name: str, size: int) -> int:
        return int(driver.cuFuncSetAttribute(self.function(name), MAX_DYNAMIC_SHARED, size))

    def unload(self) -> int:
        return int(driver.cuModuleUnload(self._handle))


def allocate(size: int) -> Pointer:
    at = Pointer()
    error = runtime.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(size))
    assert error == 0, error
    return at


def allocation_error(size: int) -> int:
    return int(runtime.cudaMalloc(ctypes.byref(Pointer()), ctypes.c_size_t(size)))


def pinned(count: int) -> Any:
    """Memory of the host that copies to and from the device reach by themselves."""
    at = Pointer()
    assert runtime.cudaMallocHost(ctypes.byref(at), ctypes.c_size_t(4 * count)) == 0
    return (ctypes.c_float * count).from_address(at.value or 0)


def copy(to: Any, source: Any, size: int, kind: int, stream: Pointer | None = None) -> int:
    return int(runtime.cudaMemcpyAsync(to, source, ctypes.c_size_t(size), kind, stream))


def write(at: Pointer, values: Sequence[float], kind: Any = ctypes.c_float) -> None:
    values_there = (kind * len(values))(*values)
    assert copy(at, values_there, ctypes.sizeof(values_there), TO_DEVICE) == 0


def read(at: Pointer, count: int, kind: Any = ctypes.c_float) -> list[Any]:
    """Returns the values there once all earlier work is done: the memory here is pageable."""
    values = (kind * count)()
    error = copy(values, at, ctypes.sizeof(values), TO_HOST)
    assert error == 0, error
    return list(values)


def stream(flags: int = 0) -> Pointer:
    made = Pointer()
    assert runtime.cudaStreamCreateWithFlags(ctypes.byref(made), flags) == 0
    return made


def synchronize(of: Pointer | None = None) -> int:
    return int(runtime.cudaStreamSynchronize(of))


def event() -> Pointer:
    made = Pointer()
    assert runtime.cudaEventCreate(ctypes.byref(made)) == 0
    return made


def begin_capture(of: Pointer, mode: int = GLOBAL) -> int:
    return int(runtime.cudaStreamBeginCapture(of, mode))


def end_capture(of: Pointer) -> tuple[int, Pointer]:
    graph = Pointer()
    return int(runtime.cudaStreamEndCapture(of, ctypes.byref(graph))), graph


def launch_graph(graph: Pointer, of: Pointer, times: int = 1) -> int:
    executable = Pointer()
    runtime.cudaGraphInstantiate(ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
    return max(int(runtime.cudaGraphLaunch(executable, of)) for _ in range(times))
