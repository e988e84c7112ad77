"""Target attributes that make another target."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate_cache.format.target_key import neighbours, target_key

CUDA: dict[str, Any] = {
    "kind": "cuda",
    "arch": "sm_90",
    "max_threads_per_block": 1024,
    "max_shared_memory_per_block": 49152,
    "thread_warp_size": 32,
    "host": {"kind": "llvm", "mtriple": "x86_64-conda-linux-gnu"},
}
LLVM: dict[str, Any] = {
    "kind": "llvm",
    "mcpu": "sapphirerapids",
    "mattr": ["+avx2", "+fma"],
    "num-cores": 2,
}


@given(st.permutations(list(CUDA)))
def test_the_order_of_attributes_does_not_count(order: list[str]) -> None:
    assert target_key({name: CUDA[name] for name in order}) == target_key(CUDA)


@pytest.mark.parametrize(
    "noise",
    [
        {"mtriple": "x86_64-conda-linux-gnu"},
        {"tag": "nvidia/h200"},
        {"keys": ["cuda", "gpu"]},
        {"libs": ["cudnn"]},
        {"device": "gpu"},
        {"host": {"kind": "llvm", "mtriple": "x86_64-unknown-linux-gnu", "mcpu": "znver4"}},
        {"host": "llvm"},
        {"mcpu": None},
    ],
)
def test_what_only_names_the_host_does_not_count(noise: dict[str, Any]) -> None:
    assert target_key({**CUDA, **noise}).digest == target_key(CUDA).digest


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "rocm"},
        {"arch": "sm_80"},
        {"max_threads_per_block": 512},
        {"max_shared_memory_per_block": 65536},
        {"thread_warp_size": 64},
        {"host": {"kind": "c"}},
        {"vector-width": 4},
    ],
)
def test_what_decides_the_code_counts(change: dict[str, Any]) -> None:
    assert target_key({**CUDA, **change}).digest != target_key(CUDA).digest


@pytest.mark.parametrize("change", [{"mcpu": "znver4"}, {"mattr": ["+avx2"]}, {"num-cores": 4}])
def test_what_decides_the_code_of_a_cpu_counts(change: dict[str, Any]) -> None:
    assert target_key({**LLVM, **change}).digest != target_key(LLVM).digest


@pytest.mark.parametrize("mattr", [["+fma", "+avx2"], "+fma,+avx2", ["+avx2", "+fma", "+fma"]])
def test_features_are_a_set_in_any_spelling(mattr: list[str] | str) -> None:
    assert target_key({**LLVM, "mattr": mattr}) == target_key(LLVM)


def test_the_slug_is_for_people() -> None:
    assert target_key(CUDA).slug == "cuda-sm_90"
    assert target_key(LLVM).slug == "llvm-sapphirerapids"
    assert target_key({"kind": "llvm", "mcpu": "x86-64-v3/.."}).slug == "llvm-x86_64_v3_"


def test_digests_are_the_same_in_every_process_and_release() -> None:
    golden = "040a2be4e3509828c659335fb70028630a39ef3ed624d7ef91cdfb4a5180f5b9"
    assert target_key(CUDA).digest == golden


def test_targets_of_machines_of_another_size_are_tried() -> None:
    here = {"kind": "llvm", "mcpu": "skylake", "num-cores": 2}
    found = {each.digest: each for each in neighbours(here)}
    other = found[target_key({**here, "num-cores": 1}).digest]
    assert (other.name, other.there, other.here) == ("threads", "1", "2")
    assert target_key(here).digest not in found
    gpu = {"kind": "cuda", "arch": "sm_90", "host": {"kind": "llvm"}}
    found = {each.digest: each for each in neighbours(gpu)}
    assert found[target_key({**gpu, "arch": "sm_80"}).digest].name == "architecture"
    assert neighbours({"kind": "hexagon"}) == ()
