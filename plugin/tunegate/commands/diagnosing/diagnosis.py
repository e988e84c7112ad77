"""The findings of `tunegate doctor`."""

from __future__ import annotations

import msgspec

from tunegate.commands.diagnosing.gated_models import GatedModel
from tunegate.edges.config.sources import Setting
from tunegate.edges.machine.health_check import HealthCheck
from tunegate.edges.models.sizes.configured_sizes import ModelSize


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """`settings`, `models`, and `sizes`, which are those of dynamic dimensions, are empty where the
    configuration cannot be read."""

    schema: int = 2
    checks: tuple[HealthCheck, ...]
    settings: tuple[Setting, ...] = ()
    sizes: tuple[ModelSize, ...] = ()
    models: tuple[GatedModel, ...] = ()
