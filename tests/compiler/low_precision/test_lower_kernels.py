"""A model in bfloat16, and what is refused by name."""

from pathlib import Path

import msgspec
import pytest

from tests.compiler.low_precision.test_tile_kernel import needs, needs_either, needs_vectors
from tests.support.small_onnx import conv_model, save
from tests.support.worker_requests import build_request
from tunegate.compiler.compile import handle_request
from tunegate.compiler.low_precision.lower_kernels import require_tiles
from tunegate.compiler.low_precision.tile_numbers import BFLOAT16, BFLOAT16_VECTORS
from tunegate.config import TargetConfig
from tunegate.errors import NotOfferedError
from tunegate.system.machine.cores import lacks_some
from tunegate.system.output.artifact_file import ArtifactFile
from tunegate.tune.compiler_protocol import BuildModel, Built, CheckArtifact, Checked
from tunegate.tune.protocol import Failed

TARGET = TargetConfig(name="cpu", threads=1)
REQUESTED = ("bfloat16", "int8", "float32")
VARIANTS = {"float32": "", "bfloat16": "bf16", "int8": "int8.dynamic"}


def request(folder: Path, precision: str = "bfloat16", *, channels: int = 64) -> BuildModel:
    model = save(conv_model(channels=channels, out=channels, size=28), folder / "m.onnx")
    scratch = folder / f"scratch-{precision}"
    scratch.mkdir()
    return build_request(
        model,
        folder,
        directory=str(folder / precision),
        scratch=str(scratch),
        precision=precision,
        variant=VARIANTS[precision],
    )


def assert_near_float32(asked: BuildModel, most: float) -> None:
    """The model is built with tiles, and on three samples it is off, by less than `most`."""
    built = handle_request(asked)
    assert isinstance(built, Built), built
    assert {each.source for each in built.functions if "conv" in each.function} == {"tiles"}
    check = CheckArtifact(
        directory=asked.directory,
        reference=built.reference,
        kind="llvm",
        seeds=(),
        samples=(1, 2, 3),
    )
    found = handle_request(check)
    assert isinstance(found, Checked)
    assert found.sampled is not None
    assert len(found.sampled.relative) == 3
    assert 0 < max(found.sampled.relative) < most


@needs_either
@pytest.mark.parametrize(("precision", "most"), [("bfloat16", 0.01), ("int8", 0.03)])
def test_a_model_in_narrow_numbers_is_near_float32_and_says_what_it_is(
    tmp_path: Path, precision: str, most: float
) -> None:
    asked = request(tmp_path, precision)
    assert_near_float32(asked, most)
    artifact = ArtifactFile.read(Path(asked.directory))
    assert (artifact.variant, artifact.settings) == (VARIANTS[precision], {"precision": precision})


@needs_either
def test_its_key_is_its_own_and_float32_stays_what_it_is(tmp_path: Path) -> None:
    lower, least, plain = (handle_request(request(tmp_path, each)) for each in REQUESTED)
    assert isinstance(lower, Built)
    assert isinstance(least, Built)
    assert least.key not in {lower.key, plain.key if isinstance(plain, Built) else ""}
    assert isinstance(plain, Built)
    assert lower.key != plain.key
    assert [each.key for each in lower.functions] == [each.key for each in plain.functions]
    assert {each.source for each in plain.functions} == {"default"}


@needs_either
def test_a_model_without_a_product_that_is_faster_is_refused(tmp_path: Path) -> None:
    asked = request(tmp_path, channels=1)
    found = handle_request(asked)
    assert isinstance(found, Failed)
    assert found.reason == (
        "m.onnx: TVM does not offer bfloat16: no product of the model is faster in it."
    )


def test_a_machine_without_the_instructions_is_told_what_it_lacks(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("flags : fpu avx512f\n")
    with pytest.raises(NotOfferedError, match=r"lacks avx512_bf16 \(it has avx512f\)"):
        require_tiles("bfloat16", TARGET, lambda wanted: lacks_some(wanted, info))
    require_tiles("float32", TARGET, lambda wanted: lacks_some(wanted, info))
    with pytest.raises(NotOfferedError, match="lacks avx512_vnni"):
        require_tiles("int8", TARGET, lambda wanted: lacks_some(wanted, info))


@pytest.mark.parametrize(
    ("precision", "flag", "cpu", "lacking"),
    [
        ("int8", "avx512_vnni", "cascadelake", "avx512vnni"),
        ("bfloat16", "avx512_bf16", "znver4", "avx512bf16"),
    ],
)
def test_a_processor_without_tiles_multiplies_by_its_vectors(
    tmp_path: Path, precision: str, flag: str, cpu: str, lacking: str
) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text(f"flags : fpu avx512f {flag}\n")
    for target in (TARGET, TargetConfig(name="cpu", cpu=cpu)):
        require_tiles(precision, target, lambda wanted: lacks_some(wanted, info))
    haswell = TargetConfig(name="cpu", cpu="haswell")
    with pytest.raises(NotOfferedError, match=f"cpu haswell has no {lacking}"):
        require_tiles(precision, haswell, lambda wanted: lacks_some(wanted, info))


@pytest.mark.parametrize(
    ("precision", "cpu", "most"),
    [
        pytest.param("int8", "cascadelake", 0.03, marks=needs_vectors),
        pytest.param("bfloat16", "cooperlake", 0.01, marks=needs(BFLOAT16_VECTORS)),
    ],
)
def test_a_target_without_tiles_is_built_by_vectors(
    tmp_path: Path, precision: str, cpu: str, most: float
) -> None:
    older = TargetConfig(name="cpu", cpu=cpu, threads=1)
    asked = msgspec.structs.replace(request(tmp_path, precision), target=older)
    assert_near_float32(asked, most)


def test_a_target_whose_processor_lacks_the_instruction_is_refused(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text(f"flags : {' '.join(BFLOAT16.flags)}\n")

    def lacks(wanted: tuple[str, ...]) -> str:
        return lacks_some(wanted, info)

    require_tiles("bfloat16", TargetConfig(name="cpu", cpu="sapphirerapids"), lacks)
    with pytest.raises(NotOfferedError, match="cpu icelake-server has no avx512bf16"):
        require_tiles("bfloat16", TargetConfig(name="cpu", cpu="icelake-server"), lacks)
