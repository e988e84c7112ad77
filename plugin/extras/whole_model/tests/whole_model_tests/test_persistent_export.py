"""A model is one kernel for every architecture, whose blocks are all resident by the figures of the
compiler: without a GPU."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
import tvm

from tunegate.errors import NotOfferedError
from tunegate.system.nvidia.cuda_toolkit import cuda_variables
from tunegate_whole_model.persistent import export
from tunegate_whole_model.persistent.export import persistent_kernel
from tunegate_whole_model.persistent.launching_module import WHOLE_KERNEL
from tunegate_whole_model.persistent.nvrtc import machine_code
from tunegate_whole_model.stages.contexts import Context
from tunegate_whole_model.stages.residency import MULTIPROCESSORS, KernelNeeds, resident_blocks
from whole_model_tests.models import TARGET, open_model, staged, text_of, whole

NAMES = (["x"], ["y"])


@pytest.mark.parametrize("arch", sorted(MULTIPROCESSORS))
def test_it_is_code_for_every_architecture(arch: str) -> None:
    model, context = whole("conv", 128), Context(3, 128)
    text = text_of(model, staged(model, "plain", 128), context, model.head)
    found = machine_code(text, arch, cuda_variables())
    (flags,) = struct.unpack_from("<I", found.cubin, 48)
    assert f"sm_{flags >> 8 & 0xFF}" == arch
    figures = found.figures[WHOLE_KERNEL]
    needs = KernelNeeds(context.threads, figures.registers, figures.shared_bytes)
    assert resident_blocks(needs, MULTIPROCESSORS[arch]) >= context.blocks_each


@pytest.mark.skipif(bool(tvm.cuda().exist), reason="with a device it is measured: tests/gpu")
def test_without_a_device_the_compilers_figures_choose(tmp_path: Path) -> None:
    found = persistent_kernel(open_model("chain").scheduled, NAMES, TARGET, tmp_path)
    assert found.context.blocks_each * found.context.threads >= 256
    assert found.figures.registers > 0
    assert found.figures.spilled_bytes == 0
    assert found.stages.barriers == 2


def test_who_has_no_compiler_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(export, "cuda_variables", dict)
    with pytest.raises(NotOfferedError, match=r"pip install 'tunegate\[nvidia\]'"):
        persistent_kernel(open_model("chain").scheduled, NAMES, TARGET, tmp_path)
