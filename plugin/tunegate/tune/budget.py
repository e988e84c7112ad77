"""The cap on tuning, and how much of it is spent. Money is time at a price."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from tunegate.artifacts import plans
from tunegate.artifacts.tasks import TuningTask
from tunegate.config import BudgetConfig, TargetConfig
from tunegate.errors import ConfigError
from tunegate.ports import EnergyCounter

Limit = Literal["seconds", "usd", "trials"]

_MINUTES_PER_HOUR = 60


def resolve_budget(config: BudgetConfig, target: TargetConfig) -> plans.Budget:
    """Returns the cap of a run on this target alone."""
    price = price_of(config, target)
    if config.usd is not None and price is None:
        message = (
            f"budget.usd: {config.usd:g} needs a price for target '{target.name}'. "
            "Set usd-per-hour on the target or under budget."
        )
        raise ConfigError(message)
    if config.min_gain_percent_per_usd is not None and not price:
        message = (
            f"budget.min-gain-percent-per-usd needs a price for target '{target.name}'. "
            "Set usd-per-hour on the target or under budget."
        )
        raise ConfigError(message)
    seconds = None if config.minutes is None else config.minutes * 60
    return budget_of(seconds, trials=config.trials, usd=config.usd, usd_per_hour=price)


def price_of(config: BudgetConfig, target: TargetConfig) -> float | None:
    """Returns the dollars of an hour. The target's price comes first."""
    return config.usd_per_hour if target.usd_per_hour is None else target.usd_per_hour


def least_gain(config: BudgetConfig, usd_per_hour: float | None) -> float:
    """Returns the gain per minute, in percent of the end-to-end time, that tuning must expect: the
    stricter of the two settings."""
    per_minute = config.min_gain_percent_per_minute
    if config.min_gain_percent_per_usd is None or usd_per_hour is None:
        return per_minute
    return max(per_minute, config.min_gain_percent_per_usd * usd_per_hour / _MINUTES_PER_HOUR)


def budget_of(
    seconds: float | None, *, trials: int | None, usd: float | None, usd_per_hour: float | None
) -> plans.Budget:
    """Returns a budget whose `seconds` are the smaller of the time allowed and the time that the
    money buys."""
    bought = _seconds_bought(usd, usd_per_hour)
    limits = [limit for limit in (seconds, bought) if limit is not None]
    return plans.Budget(
        seconds=min(limits) if limits else None,
        trials=trials,
        usd=usd,
        usd_per_hour=usd_per_hour,
    )


def trials_kept(known: int, trials: int) -> int:
    """Returns the trials that a search leaves for so many known schedules to be measured, at most
    half: claims of one side must not end the search of the other."""
    return min(known, trials // 2)


class Spending(msgspec.Struct, frozen=True, kw_only=True):
    """The spent part of a budget so far. Failed candidates count as trials."""

    budget: plans.Budget
    seconds: float = 0.0
    trials: int = 0
    joules: float | None = None
    energy_source: plans.EnergySource | None = None

    @property
    def usd(self) -> float | None:
        if self.budget.usd_per_hour is None:
            return None
        return self.seconds * self.budget.usd_per_hour / plans.SECONDS_PER_HOUR

    @property
    def cost(self) -> plans.Cost:
        return plans.Cost(
            seconds=self.seconds,
            usd=self.usd,
            joules=self.joules,
            energy_source=self.energy_source,
        )

    @property
    def seconds_left(self) -> float | None:
        if self.budget.seconds is None:
            return None
        return max(0.0, self.budget.seconds - self.seconds)

    @property
    def trials_left(self) -> int | None:
        if self.budget.trials is None:
            return None
        return max(0, self.budget.trials - self.trials)

    @property
    def limit(self) -> Limit | None:
        """The limit reached, None while something of each is left."""
        if self.trials_left == 0:
            return "trials"
        if self.seconds_left == 0:
            return clock_limit(self.budget)
        return None

    @property
    def is_spent(self) -> bool:
        return self.limit is not None


def left_after(config: BudgetConfig, spent: Spending) -> BudgetConfig:
    """Returns the caps without what was spent, at the price of its target."""
    minutes, usd, trials = config.minutes, config.usd, config.trials
    return msgspec.structs.replace(
        config,
        minutes=None if minutes is None else max(0.0, minutes - spent.seconds / 60),
        usd=None if usd is None else max(0.0, usd - (spent.usd or 0.0)),
        trials=None if trials is None else max(0, trials - spent.trials),
    )


def clock_limit(budget: plans.Budget) -> Limit:
    """Returns the limit on time that ends tuning first: the money or the minutes."""
    bought = _seconds_bought(budget.usd, budget.usd_per_hour)
    if bought is not None and budget.seconds is not None and bought <= budget.seconds:
        return "usd"
    return "seconds"


def _seconds_bought(usd: float | None, usd_per_hour: float | None) -> float | None:
    if usd is None or not usd_per_hour:  # a machine that costs nothing is not limited by money
        return None
    return usd / usd_per_hour * plans.SECONDS_PER_HOUR


# The joules of a run, by the machine's counters.


class EnergyUse:
    """Counts what the machine uses from its creation on."""

    def __init__(self, counter: EnergyCounter) -> None:
        self._counter = counter
        self._first = counter.reading()

    def total(self) -> plans.TotalEnergy:
        """Returns what was used so far, 0 while the counter is silent."""
        now = self._counter.reading()
        if now is None or self._first is None:
            return plans.NOT_COUNTED
        return plans.TotalEnergy(now.joules - self._first.joules, self._first.source)


# Trimmer's cost objective (IEEE CLOUD 2022): whether a model is fast enough, by the end-to-end
# estimate over all tasks. The authors' code sums only tasks that still run, so the sum drops when a
# task is stopped, and has no weights. Here every task counts, as often as it is called.

TimedTask = tuple[TuningTask, float]
"""A task and the milliseconds of one call, measured or expected."""


def model_ms(tasks: Iterable[TimedTask]) -> dict[str, float]:
    """Returns the estimate of every model at head."""
    ms_of_models: dict[str, float] = {}
    for task, milliseconds in tasks:
        for use in task.uses:
            if use.side == "head":
                ms_of_models[use.model] = (
                    ms_of_models.get(use.model, 0.0) + use.weight * milliseconds
                )
    return ms_of_models


def is_reached(estimates: Mapping[str, float], targets_ms: Mapping[str, float]) -> bool:
    """Returns whether there is a target and every model is within its own."""
    return bool(targets_ms) and all(
        estimates.get(model, 0.0) <= limit for model, limit in targets_ms.items()
    )


def parts_of_target(
    shards: Sequence[Sequence[TimedTask]], target_ms: float
) -> list[dict[str, float]]:
    """Returns the part of a model's target for the tasks of each shard, in proportion to their
    expected times."""
    whole = model_ms(task for shard in shards for task in shard)
    return [
        {model: target_ms * part / whole[model] for model, part in model_ms(shard).items() if part}
        for shard in shards
    ]
