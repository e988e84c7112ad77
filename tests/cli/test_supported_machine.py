from __future__ import annotations

import pytest

from tunegate.cli.supported_machine import Machine, this_machine, why_unsupported

USUAL = Machine("Linux", "x86_64", "glibc", (3, 11), is_64_bit=True)


def test_the_machine_of_these_tests_is_supported() -> None:
    assert why_unsupported(this_machine()) == ""


@pytest.mark.parametrize("processor", ["x86_64", "AMD64", "aarch64", "arm64"])
def test_linux_on_both_processors_is_supported(processor: str) -> None:
    assert why_unsupported(USUAL._replace(processor=processor, python=(3, 14))) == ""


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        (USUAL._replace(system="Darwin", processor="arm64", libc=""), "macOS is not supported"),
        (USUAL._replace(system="Windows", processor="AMD64"), "Windows is not supported"),
        (USUAL._replace(system=""), "this system is not supported"),
        (USUAL._replace(processor="riscv64"), "the processor riscv64 is not supported"),
        (USUAL._replace(processor=""), "the processor of this machine is not supported"),
        (USUAL._replace(processor="i686"), "the processor i686 is not supported"),
        (USUAL._replace(libc=""), "a Linux without glibc (musl, as in Alpine) is not supported"),
        (USUAL._replace(is_64_bit=False), "a 32-bit Python is not supported"),
        (USUAL._replace(python=(3, 10)), "Python 3.10 is not supported"),
        (USUAL._replace(python=(3, 15)), "Python 3.15 is not supported"),
        (USUAL._replace(libc_version="2.27"), "glibc 2.27 is not supported"),
        (USUAL._replace(kind="PyPy"), "PyPy is not supported"),
        (USUAL._replace(has_gil=False), "a CPython without the GIL is not supported"),
    ],
)
def test_any_other_is_named_with_what_is_supported(machine: Machine, said: str) -> None:
    problem = why_unsupported(machine)
    assert problem.startswith(said)
    assert "Linux with glibc 2.28 or newer on x86-64 or arm64, and a 64-bit CPython 3.11" in problem
