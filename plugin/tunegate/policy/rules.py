"""The merge of two configurations: for each section the value that counts, as its keys declare it.

A key with an order has the stricter value, whoever wrote it. Every other key has the base's.
"""

from __future__ import annotations

import msgspec

from tunegate.config import (
    AccuracyConfig,
    BudgetConfig,
    CacheConfig,
    GateConfig,
    MetricCommandConfig,
    ObjectiveConfig,
    TargetConfig,
)
from tunegate.config_key import keys_of
from tunegate.policy.sections import Rules


def rules_of(section: type[msgspec.Struct]) -> Rules:
    """The rules that the keys of a section declare."""
    declared = {each.field: each.key for each in keys_of(section)}
    return Rules(
        ordered={name: key.stricter for name, key in declared.items() if key.stricter},
        filled=frozenset(name for name, key in declared.items() if key.may_fill),
    )


GATE = rules_of(GateConfig)
# A change that is tuned less, or built from fewer records, is not judged more strictly: a base
# below its best lets a slower head pass. So no key of these two has an order.
BUDGET = rules_of(BudgetConfig)
CACHE = rules_of(CacheConfig)
TARGET = rules_of(TargetConfig)
ACCURACY = rules_of(AccuracyConfig)
METRIC_COMMAND = rules_of(MetricCommandConfig)
"""Two bounds on the same command have an order; of two commands the base's runs."""
OBJECTIVE = rules_of(ObjectiveConfig)
