from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import onnx
import onnxruntime
import pytest

from tests.support.measured_cells import make_changes, make_version
from tests.support.models.external_data import lay_out
from tests.support.small_onnx import matmul_model, save
from tunegate.artifacts.changes import ChangeSet, ExternalFile, ModelInput, ModelVersion, Revisions
from tunegate.artifacts.inputs import GivenFor, GivenRules
from tunegate.config import Config, InputConfig, ModelConfig, TargetConfig, ValuesConfig
from tunegate.errors import ModelError
from tunegate.models.export_models import ExportedModels, export_models
from tunegate.models.model_inputs import inputs_of_file
from tunegate.models.preparation import prepare
from tunegate.models.saved_model import file_digests
from tunegate.ports import Trailer, TreeEntry
from tunegate.tools import ModelSource

Kind = Literal["added", "modified", "renamed", "deleted", "unreadable"]
(CHANGE,) = make_changes().models
CONFIG = Config(
    models=(ModelConfig(path=CHANGE.path, inputs={"x": (1, 8)}),),
    targets=(TargetConfig(name="cpu"),),
)


class Versions:
    """Writes the content of a version; those in `broken` are no models."""

    def __init__(self, *, broken: str = "") -> None:
        self.broken, self.written = broken, list[str]()

    def export_model(self, version: ModelVersion, into: Path) -> Path:
        if version.content_digest in self.broken:
            message = f"{version.path}: {version.content_digest} is not a valid ONNX model"
            raise ModelError(message)
        self.written.append(version.content_digest)
        into.mkdir()
        file = into / "model.onnx"
        file.write_text(version.content_digest)
        return file

    def revisions(self, base: str | None, head: str | None) -> Revisions:
        raise NotImplementedError

    def files(self, revision: str) -> Sequence[TreeEntry]:
        raise NotImplementedError

    def read(self, revision: str, path: str) -> bytes:
        raise NotImplementedError

    def data(self, revision: str, path: str, most_bytes: int) -> bytes:
        raise NotImplementedError

    def trailers(
        self, base: str, head: str, key: str, *, may_fetch: bool = True
    ) -> Sequence[Trailer]:
        raise NotImplementedError


class NoValues:
    """Gives no values, and keeps what it was asked for; `problem` is told of each model."""

    def __init__(self, problem: str = "") -> None:
        self.wanted: list[GivenFor] = []
        self._problems = (problem,) if problem else ()

    def rules(self, model: Path, wanted: GivenFor) -> GivenRules:
        self.wanted.append(wanted)
        return GivenRules({}, self._problems)


def source_of(
    workdir: Path, config: Config = CONFIG, repository: Any = None, **changes: Any
) -> ModelSource:
    """Models without inputs that are known, without values, and which no runtime builds."""
    source = ModelSource(
        config=config,
        repository=repository or Versions(),
        candidates={},
        workdir=workdir,
        read_inputs=lambda _: None,
        read_values=NoValues().rules,
    )
    return replace(source, **changes)


def changes(*, base: ModelVersion, head: ModelVersion) -> ChangeSet:
    change = msgspec.structs.replace(CHANGE, base=base, head=head)
    return msgspec.structs.replace(make_changes(), models=(change,))


def exported(
    changes: ChangeSet,
    repository: Versions,
    workdir: Path,
    *,
    inputs: tuple[ModelInput, ...] | None = None,
    config: Config = CONFIG,
    values: NoValues | None = None,
) -> ExportedModels:
    source = source_of(workdir, config, repository, read_inputs=lambda _: inputs)
    return export_models(changes, replace(source, read_values=(values or NoValues()).rules))


def test_a_job_for_the_compiler_has_the_shapes_of_the_configuration(tmp_path: Path) -> None:
    found = exported(make_changes(), Versions(), tmp_path)
    job = found.job(CHANGE.path, "head", CONFIG.targets[0])
    assert job.file.read_text() == "h"
    assert (job.path, job.shapes, job.target) == (CHANGE.path, {"x": (1, 8)}, CONFIG.targets[0])


def test_equal_contents_share_a_file_and_are_written_once(tmp_path: Path) -> None:
    repository = Versions()
    same = changes(base=make_version("x"), head=make_version("x"))
    files = exported(same, repository, tmp_path).files
    assert len({model.file for model in files.values()}) == 1
    assert exported(same, repository, tmp_path).files == files
    assert repository.written == ["x"]


def test_models_that_differ_in_their_data_files_alone_share_none(tmp_path: Path) -> None:
    other = msgspec.structs.replace(make_version("x"), external=(ExternalFile("w", "digest"),))
    files = exported(changes(base=make_version("x"), head=other), Versions(), tmp_path).files
    assert len({model.file for model in files.values()}) == 2


def test_a_base_that_is_no_model_has_no_file_and_is_told(tmp_path: Path) -> None:
    found = exported(make_changes(), Versions(broken="b"), tmp_path)
    assert [side for _, side in found.files] == ["head"]
    assert list(found.unreadable) == [(CHANGE.path, "base")]
    assert "not a valid ONNX model" in found.unreadable[CHANGE.path, "base"]


def test_a_head_that_is_no_model_is_told_and_no_job_for_a_compiler(tmp_path: Path) -> None:
    found = exported(make_changes(), Versions(broken="h"), tmp_path)
    assert list(found.unreadable) == [(CHANGE.path, "head")]
    assert found.job(CHANGE.path, "base", CONFIG.targets[0]).file.read_text() == "b"
    with pytest.raises(ModelError, match="not a valid ONNX model"):
        found.job(CHANGE.path, "head", CONFIG.targets[0])


OPEN = (ModelInput("x", (None, 8), ("batch", "")), ModelInput("y", (None,), ("batch",)))


def test_sizes_by_symbol_become_the_shapes_of_inputs(tmp_path: Path) -> None:
    config = msgspec.structs.replace(CONFIG, models=(ModelConfig(path=CHANGE.path),))
    config = msgspec.structs.replace(config, dims={"batch": 4})
    found = exported(make_changes(), Versions(), tmp_path, inputs=OPEN, config=config)
    assert found.files[CHANGE.path, "head"].shapes == {"x": (4, 8), "y": (4,)}


def test_the_gaps_of_every_model_are_told_and_the_others_have_their_files(tmp_path: Path) -> None:
    static = msgspec.structs.replace(CHANGE, path="other.onnx")
    both = msgspec.structs.replace(make_changes(), models=(CHANGE, static))
    entry = ModelConfig(path="other.onnx", dims={"batch": 1})
    config = msgspec.structs.replace(CONFIG, models=(entry, ModelConfig(path="**")))
    found = exported(both, Versions(), tmp_path, inputs=OPEN, config=config)
    assert {path for path, _ in found.files} == {"other.onnx"}
    assert found.unreadable[CHANGE.path, "head"] == (
        f'{CHANGE.path}: dimension "batch" (axis 0 of x, axis 0 of y) is dynamic. '
        "Give its size under dims: batch: ... in tunegate.yaml."
    )


def test_files_of_values_are_those_of_the_base_where_they_fit(tmp_path: Path) -> None:
    given = ValuesConfig(file="inputs/x.npy")
    entry = ModelConfig(path=CHANGE.path, inputs={"x": InputConfig(shape=(1, 8), values=given)})
    config = msgspec.structs.replace(CONFIG, models=(entry,))
    values = NoValues()
    exported(make_changes(), Versions(), tmp_path, config=config, values=values)
    revisions = make_changes().revisions
    wanted = GivenFor(
        values={"x": given},
        shapes={"x": (1, 8)},
        revisions=(str(revisions.base), str(revisions.base), revisions.head),
    )
    assert values.wanted == [wanted, wanted]


def test_unfit_values_are_a_heads_problem_and_a_base_runs_without(tmp_path: Path) -> None:
    found = exported(make_changes(), Versions(), tmp_path, values=NoValues("odd"))
    assert found.unreadable == {(CHANGE.path, "head"): f"{CHANGE.path}: odd"}
    assert [side for _, side in found.files] == ["base"]


@pytest.mark.parametrize("kind", ["deleted", "renamed", "unreadable"])
def test_a_model_without_work_has_no_side(kind: Kind) -> None:
    assert msgspec.structs.replace(CHANGE, kind=kind).compiled_sides == {}


def test_a_new_model_has_no_base() -> None:
    (added,) = make_changes(is_new=True).models
    assert added.compiled_sides == {"head": added.head}
    assert CHANGE.compiled_sides == {"base": CHANGE.base, "head": CHANGE.head}


def sizes(
    tmp_path: Path, base: ModelInput, head: ModelInput, config: Config = CONFIG
) -> ExportedModels:
    """Exports the models where the configuration asks for [1, 8], or for something else."""
    inputs = {"b": (base,), "h": (head,)}
    source = source_of(tmp_path, config, read_inputs=lambda file: inputs[file.read_text()])
    return export_models(make_changes(), source)


def test_a_head_that_became_dynamic_is_run_at_the_sizes_of_its_base(tmp_path: Path) -> None:
    found = sizes(tmp_path, ModelInput("x", (2, 8)), ModelInput("x", (None, 8), ("batch", "")))
    assert found.unreadable == {}
    assert found.files[CHANGE.path, "head"].shapes == {"x": (2, 8)}
    assert found.resized == {(CHANGE.path, "head"): {"x": (2, 8)}}


def test_a_head_that_became_static_is_compared_where_it_takes_what_is_asked(tmp_path: Path) -> None:
    found = sizes(tmp_path, ModelInput("x", (None, 8), ("batch", "")), ModelInput("x", (1, 8)))
    assert (found.unreadable, found.resized) == ({}, {})
    assert found.files[CHANGE.path, "base"].shapes == {"x": (1, 8)}


def test_a_base_is_run_at_the_only_sizes_of_a_head_that_became_static(tmp_path: Path) -> None:
    """Only the base would do the work of the 128 that the configuration asks for."""
    config = Config(models=(ModelConfig(path="**"),), dims={"batch": 128})
    opened = ModelInput("x", (None, 8), ("batch", ""))
    found = sizes(tmp_path, opened, ModelInput("x", (64, 8)), config)
    assert found.files[CHANGE.path, "base"].shapes == {"x": (64, 8)}
    assert found.files[CHANGE.path, "head"].shapes == {}
    assert found.resized == {(CHANGE.path, "base"): {"x": (64, 8)}}


class WithNewSymbol(Versions):
    """The head calls its rows `n`, the base `batch`."""

    def export_model(self, version: ModelVersion, into: Path) -> Path:
        model = matmul_model(rows="batch" if version.content_digest == "b" else "n")
        return save(model, into / "model.onnx")


def test_a_renamed_symbol_is_told_with_the_size_that_the_base_has(tmp_path: Path) -> None:
    config = Config(models=(ModelConfig(path="**", dims={"batch": 64}),))
    source = source_of(tmp_path, config, WithNewSymbol(), read_inputs=inputs_of_file)
    found = export_models(make_changes(), source)
    assert 'Likely, as keys of its entry: dims: {"n": 64}.' in found.unreadable[CHANGE.path, "head"]


class WithDefault(Versions):
    """The head's input `w` has a default; the base's callers have to give it."""

    def export_model(self, version: ModelVersion, into: Path) -> Path:
        model = matmul_model()
        given = onnx.helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, [16, 16])
        model.graph.input.append(given)
        if version.content_digest == "b":
            del model.graph.initializer[:]
        return save(model, into / "model.onnx")


def test_a_head_that_gives_an_input_of_the_base_a_default_is_refused(tmp_path: Path) -> None:
    """Callers go on giving it, and the gate would run the head on a default that does less."""
    without = Config(models=CONFIG.models[:0])
    source = source_of(tmp_path, without, WithDefault(), read_inputs=inputs_of_file)
    found = export_models(make_changes(), source)
    assert set(found.unreadable) == {(CHANGE.path, "head")}
    assert "input w is an initializer now" in found.unreadable[CHANGE.path, "head"]


OVER_TWO_GIB = 2**31 + 2**28


def test_the_weights_beside_a_large_model_are_in_its_digests(tmp_path: Path) -> None:
    file = tmp_path / "optimized.onnx"
    file.write_bytes(b"graph")
    (tmp_path / "optimized.data").write_bytes(b"weights")
    before = file_digests(file)
    (tmp_path / "optimized.data").write_bytes(b"changed")
    assert set(before) == {"optimized.onnx", "optimized.data"}
    assert file_digests(file) != before


def test_a_model_of_over_two_gib_is_prepared_with_its_weights_in_a_file(tmp_path: Path) -> None:
    """The numbers never pass through one message, which ends at two GiB; a hole stays a hole, and
    two links to one file one file."""
    there = tmp_path / "there"
    there.mkdir()
    model = matmul_model(seed=3)
    small = model.graph.initializer[0]
    right = onnx.numpy_helper.to_array(small)
    small_bytes = small.raw_data
    lay_out(small, "w.bin").external_data.add(key="offset", value=str(OVER_TWO_GIB))
    huge = onnx.TensorProto(name="huge", data_type=1, dims=[OVER_TWO_GIB // 4])
    model.graph.initializer.append(lay_out(huge, "same.bin"))
    huge_length = model.graph.initializer[1].external_data.add(key="length")
    huge_length.value = str(OVER_TWO_GIB)
    (there / "m.onnx").write_bytes(model.SerializeToString())
    with (there / "w.bin").open("wb") as file:
        file.seek(OVER_TWO_GIB)
        file.write(small_bytes)
    (there / "same.bin").hardlink_to(there / "w.bin")

    found = prepare(there / "m.onnx", shapes={}, into=tmp_path / "p", path="m.onnx")
    assert found.weights is not None
    assert found.weights.stat().st_blocks * 512 < 2**24
    assert found.unfixable == (
        "m.onnx: it has 2.3 GiB of weights, and only ONNX Runtime takes models of 2 GiB and more "
        "here."
    )
    copy = tmp_path / "artifact" / "model.onnx"
    copy.parent.mkdir()
    found.copy_to(copy)
    x = np.ones(found.inputs[0].shape, np.float32)
    (ran,) = onnxruntime.InferenceSession(copy).run(None, {"x": x})
    np.testing.assert_allclose(ran, x @ right, rtol=1e-4)
