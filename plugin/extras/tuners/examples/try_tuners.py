"""Two processes with nothing in common but a directory: what the tuners of one store, those of the
other find. Run by try_tuners.sh, in an environment with the tuners' own packages."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import subprocess
import sys
import types
from importlib.metadata import version
from pathlib import Path

import triton
import triton.language as tl
from helion.autotuner.local_cache import parse_cache_entry
from helion.autotuner.remote_cache import _load_remote_backend, _remote_get, _remote_put
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from tunegate.system.cache.shared_cache import signing_key
from tunegate_tuners.flashinfer import shared_autotune

ENTRY = json.dumps(
    {
        "key": {"fields": {"hardware": "H100", "specialization_key": "f32"}},
        "config": json.dumps({"block_sizes": [64, 64], "num_warps": 4}),
    }
)
OPERATION = "('gemm', 'CutlassRunner', ((1, 2),), ())"


def share_helion(is_first: bool) -> bool:
    backend = _load_remote_backend()
    if is_first:
        _remote_put(backend, "0" * 64, ENTRY)
    found = _remote_get(backend, "0" * 64)
    listed = [parse_cache_entry(each) for each in backend.list(10)]
    return found == ENTRY and [dict(each.config)["num_warps"] for each in listed] == [4]


@triton.jit  # type: ignore[untyped-decorator]
def double(x, y, n: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """The kernel that is compiled, for a GPU that need not be there."""
    at = tl.arange(0, n)
    tl.store(y + at, tl.load(x + at) * 2)


def share_triton(is_first: bool) -> bool:
    before = _stored_objects("triton")
    types_of = {"x": "*fp32", "y": "*fp32", "n": "constexpr"}
    source = ASTSource(fn=double, signature=types_of, constexprs={"n": 128})
    kernel = triton.compile(source, target=GPUTarget("cuda", 90, 32))
    is_reused = _stored_objects("triton") == before and bool(before)
    return bool(kernel.asm["cubin"]) and is_reused != is_first


def _stored_objects(tuner: str) -> set[Path]:
    return set(Path("../bucket/ms1/z/main/lent", tuner).rglob("*-*-*"))


def share_flashinfer(is_first: bool) -> bool:
    with shared_autotune(Path("flashinfer")) as root:
        store = _flashinfer_cache().ManagedAutotuneCache({"gpu": "H100"}, root=root)
        if is_first:
            store.publish(OPERATION, "CutlassRunner", [128, 2])
        found = store.lookup(OPERATION)
    return found is not None and found.tactic == [128, 2]


def _flashinfer_cache() -> types.ModuleType:
    """FlashInfer's own file. Its package loads CUDA, of which the file needs only the logger."""
    package = importlib.util.find_spec("flashinfer")
    assert package is not None
    assert package.submodule_search_locations
    for name in ("flashinfer", "flashinfer.jit", "flashinfer.jit.core"):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = list(package.submodule_search_locations)
    core = sys.modules["flashinfer.jit.core"]
    core.logger = logging.getLogger("flashinfer")  # type: ignore[attr-defined]
    return importlib.import_module("flashinfer.autotune_cache")


TUNERS = {"helion": share_helion, "triton": share_triton, "flashinfer-python": share_flashinfer}


def main(place: Path) -> int:
    """Runs the two processes, and says whether the second found everything."""
    config = place / "tunegate.yaml"
    signer = signing_key()
    assert signer is not None
    keys = f"{{main: ['{signer.public}'], rel: ['{signer.public}']}}"
    config.write_text(
        f"models: [{{path: '*.onnx'}}]\ncache: {{url: {place}/bucket, trusted-keys: {keys}}}\n"
    )
    for name in ("first", "second"):
        folder = place / name
        folder.mkdir(exist_ok=True)
        settings = {
            "TUNEGATE_TUNERS": str(config),
            "HELION_REMOTE_CACHE_BACKEND": "tunegate_tuners.helion.HelionBackend",
            "TRITON_CACHE_MANAGER": "triton.runtime.cache:RemoteCacheManager",
            "TRITON_REMOTE_CACHE_BACKEND": "tunegate_tuners.triton:TritonBackend",
            "TRITON_CACHE_DIR": str(folder / "triton"),
        }
        command = [sys.executable, __file__, "--process", name]
        done = subprocess.run(command, cwd=folder, env={**os.environ, **settings}, check=False)
        if done.returncode:
            return done.returncode
    return 0


def share(name: str) -> int:
    """Lets every tuner of this process share; the first process stores."""
    results = {tuner: act(name == "first") for tuner, act in TUNERS.items()}
    for tuner, is_found in results.items():
        print(f"{name}: {tuner} {version(tuner)}: {'found' if is_found else 'NOT FOUND'}")
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(share(sys.argv[2]) if sys.argv[1] == "--process" else main(Path(sys.argv[1])))
