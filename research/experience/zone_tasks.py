"""The tasks of zone `exp` in the shared cache, as structs."""

from __future__ import annotations

from research.experience.lines import ReadExperience, lines_of, read_experience
from research.experience.zone import (
    all_tasks,
    append_task,
    device_digest,
    known_layers,
)
from tunegate.tune.prior import TaskExperience
from tunegate_cache.maintenance.history import LinesTooLongError
from tunegate_cache.stores.store import ObjectStore, StoreUnavailableError


def write_task(store: ObjectStore, task: TaskExperience) -> str:
    """Writes the task, and returns the reason why it could not, or an empty string."""
    device = device_digest(task.device, task.threads)
    try:
        append_task(store, lines_of([task]), device=device, layer=task.layer)
    except (LinesTooLongError, StoreUnavailableError) as error:
        return str(error)
    return ""


def measured_layers(store: ObjectStore, device: str, threads: int) -> frozenset[str]:
    """Raises StoreUnavailableError."""
    return known_layers(store, device_digest(device, threads))


def read_tasks(store: ObjectStore) -> ReadExperience:
    """Every task of every device that can be used. Raises StoreUnavailableError."""
    lines = [line for body in all_tasks(store) for line in body.splitlines()]
    return read_experience(lines)
