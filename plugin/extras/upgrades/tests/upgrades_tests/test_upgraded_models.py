"""The models that a lock file gates, and their names."""

from __future__ import annotations

import pytest

from tunegate.artifacts.changes import ModelVersion, path_of, profile_of, without_upgrade
from tunegate.config import Config, ModelConfig, ProfileConfig, TargetConfig
from tunegate_upgrades.lock_files.lock import LockFile, LockFileError, PinnedPackage
from tunegate_upgrades.locked_runtimes import LockedRuntime
from tunegate_upgrades.upgraded_locks import UpgradedLock, WatchedChanges
from tunegate_upgrades.upgraded_models import upgraded_models
from tunegate_upgrades.watcher import Watched

FAST = LockedRuntime(
    name="fast", title="Fast", packages=("fast",), runs=lambda target: target.kind == "llvm"
)
COMPILER = LockedRuntime(
    name="slow", title="Slow", packages=("slow", "slow-ffi"), runs=lambda _: True, compiles=True
)
PAIR = LockedRuntime(name="pair", title="Pair", packages=("openvino", "nncf"), runs=lambda _: True)
MODEL = ModelVersion(
    revision="h", path="m.onnx", content_digest="1", graph_digest=None, storage="git", size_bytes=1
)
CONFIG = Config(models=(ModelConfig(path="*.onnx"),))


def lock(refused: str = "", **versions: str) -> LockFile:
    named = {name.replace("_", "-"): version for name, version in versions.items()}
    pins = {name: PinnedPackage(name=name, version=version) for name, version in named.items()}
    return LockFile(path="r.txt", pins=pins, refused={"fast": refused} if refused else {})


def found(base: LockFile | None, head: LockFile, config: Config = CONFIG) -> list[tuple[str, ...]]:
    each = UpgradedLock(base=base, head=head, reason="r.txt is new")
    changes = upgraded_models(config, {"m.onnx": MODEL}, [each], [FAST, COMPILER])
    return [(change.path, change.reason, *change.targets) for change in changes]


def test_a_model_is_gated_under_a_name_that_says_why() -> None:
    told = found(lock(fast="1"), lock(fast="2"))
    assert told == [("m.onnx (fast of r.txt)", "fast 1 -> 2", "cpu")]


def test_other_packages_that_changed_are_counted() -> None:
    ((_, reason, *_),) = found(lock(fast="1", arrays="1"), lock(fast="1", arrays="2", more="1"))
    assert reason == "fast as before, other pins that changed: 2"


def test_each_profile_is_gated_and_its_name_still_tells_the_model() -> None:
    profiles = {"long": ProfileConfig(), "short": ProfileConfig()}
    config = Config(models=(ModelConfig(path="*.onnx", profiles=profiles),))
    names = [name for name, *_ in found(lock(fast="1"), lock(fast="2"), config)]
    assert names == ["m.onnx@long (fast of r.txt)", "m.onnx@short (fast of r.txt)"]
    assert {path_of(name) for name in names} == {"m.onnx"}
    assert {profile_of(name) for name in names} == {"long", "short"}
    assert without_upgrade("odd (a of b).onnx") == "odd (a of b).onnx"


@pytest.mark.parametrize(
    ("target", "is_gated"),
    [
        (TargetConfig(name="cpu"), True),
        (TargetConfig(name="cpu", runtime="fast"), True),
        (TargetConfig(name="cpu", runtime="slow"), False),
        (TargetConfig(name="cpu", kind="cuda"), False),
    ],
)
def test_targets_that_ship_with_another_runtime_are_left_out(
    target: TargetConfig, *, is_gated: bool
) -> None:
    config = Config(models=CONFIG.models, targets=(target,))
    assert bool(found(lock(fast="1"), lock(fast="2"), config)) is is_gated


@pytest.mark.parametrize(
    ("base", "why"),
    [
        (None, "nothing to compare with: r.txt is new"),
        (lock(arrays="1"), "nothing to compare with: the base pins no fast"),
        (lock(refused="fast is open"), "nothing to compare with: at the base, fast is open"),
    ],
)
def test_a_base_without_the_pinned_runtime_is_new(base: LockFile | None, why: str) -> None:
    each = UpgradedLock(base=base, head=lock(fast="2"), reason="" if base else "r.txt is new")
    (change,) = upgraded_models(CONFIG, {"m.onnx": MODEL}, [each], [FAST])
    assert (change.base, change.reason) == (None, why)


def test_a_head_that_takes_the_runtime_from_elsewhere_is_refused_by_name() -> None:
    with pytest.raises(LockFileError, match="fast is taken from https://e"):
        found(lock(fast="1"), lock(refused="fast is taken from https://e"))


@pytest.mark.parametrize(
    ("base", "head", "note", "moved"),
    [
        (lock(x="1"), lock(x="2"), "r.txt changed, and pins none of fast, slow, slow-ffi", ""),
        (lock(slow="1"), lock(slow="2"), "slow 1 -> 2: Slow compiles models", "r.txt: slow"),
        (
            lock(fast="1", slow="1", slow_ffi="3"),
            lock(fast="1", slow="1", slow_ffi="4"),
            "r.txt has slow-ffi 3 -> 4: Slow compiles models",
            "r.txt: slow-ffi",
        ),
        (
            lock(fast="1", nvidia_cublas="1", onnxruntime_gpu="1"),
            lock(fast="2", nvidia_cublas="2", onnxruntime_gpu="2"),
            "nvidia-cublas 1 -> 2, onnxruntime-gpu 1 -> 2: no runtime here is gated by that",
            "",
        ),
        (lock(openvino="1"), lock(openvino="2"), "openvino 1 -> 2: no runtime here is gated", ""),
        (lock(fast="1"), lock(fast="1", ort_nightly="2"), "ort-nightly none -> 2: no runtime", ""),
        (lock(fast="1", slow="1"), lock(slow="1"), "r.txt pins no fast any more", "r.txt: fast"),
    ],
)
def test_what_is_not_measured_is_told_and_may_be_a_policy_change(
    base: LockFile, head: LockFile, note: str, moved: str
) -> None:
    changes = WatchedChanges(locks=(UpgradedLock(base=base, head=head),), notes=("first",))
    watched = Watched(changes=changes, runtimes=(FAST, COMPILER, PAIR))
    first, told = watched.notes
    assert first == "first"
    assert note in told
    assert [each.key for each in watched.loosened_rules] == [moved] * bool(moved)
    assert all(each.weakens for each in watched.loosened_rules)
