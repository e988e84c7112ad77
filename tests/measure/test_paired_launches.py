import math
import random
from collections.abc import Generator, Sequence

import pytest
from msgspec.structs import replace

from tests.support.measured_cells import make_launches
from tests.support.present import present
from tunegate.artifacts.histogram import histogram
from tunegate.artifacts.measurements import Clocks, GpuState, Launch, Stalls
from tunegate.config import GateConfig
from tunegate.decide.guards import undisturbed_launches
from tunegate.errors import MeasurementError
from tunegate.measure import paired_launches
from tunegate.measure.bench_messages import other_side
from tunegate.measure.pair_bench import BlockEnergy, Blocks, block_energy, launch_order, side_energy
from tunegate.ports import EnergyReading, ProbeThresholds
from tunegate.review.gate_rules import gate_at


class ScriptedBench:
    within_spread, start_seconds, pair_seconds = 0.01, 2.0, 0.5

    def __init__(
        self, effects: Sequence[float], noises: Sequence[float] = (), probes: Sequence[float] = ()
    ) -> None:
        self.probe_effects = [*probes, *[0.0] * 100]
        quiet = [*noises, *[0.001] * len(effects)]
        self.launches = [
            replace(launch, noise=noise)
            for launch, noise in zip(make_launches(effects), quiet, strict=False)
        ]
        self.done = 0

    def launch(self, pairs: int) -> Launch:
        self.done += 1
        return self.launches.pop(0)

    def probes(self, count: int, far: ProbeThresholds) -> Generator[Launch]:
        for _ in range(count):
            yield make_launches([self.probe_effects.pop(0)])[0]


def measured(
    bench: ScriptedBench,
    control: ScriptedBench | None = None,
    seconds: float = 100.0,
    extend: bool = True,
    rare: float = 0.2,
    waived: GateConfig | None = None,
) -> tuple[paired_launches.PairedLaunches, list[paired_launches.LaunchProgress]]:
    said: list[paired_launches.LaunchProgress] = []
    quiet = control or ScriptedBench([0.0] * 20)
    gate = GateConfig(seconds=seconds, extend=extend, rare_launches=rare)
    return paired_launches.launch_until_decided(
        bench, quiet, gate, 1, said.append, waiver=waived
    ), said


@pytest.mark.parametrize("seconds", [100.0, 2.0])
def test_a_disturbed_launch_is_made_up_for_and_does_not_decide(seconds: float) -> None:
    bench = ScriptedBench([0.1, 0.1, -0.9, 0.1, 0.101], [0.001, 0.001, 0.4, 0.001])
    found, _ = measured(bench, seconds=seconds)
    assert (found.stopped, bench.done) == ("decided", 5)


def test_a_machine_that_disturbs_every_other_launch_is_unfit() -> None:
    noises = [0.001, 0.4, 0.001, 0.4, 0.001, 0.4] * 10
    found, _ = measured(ScriptedBench([0.04, -0.9] * 30, noises))
    assert found.stopped == "disturbed"


def test_a_burst_at_the_beginning_passes_and_the_launches_after_it_decide() -> None:
    noises = [0.001, 0.001, 0.4, 0.4, 0.4, 0.001, 0.001, 0.001, 0.001]
    effects = [0.1, 0.06, -0.9, 0.9, -0.9, 0.1, 0.101, 0.1, 0.099]
    found, _ = measured(ScriptedBench(effects, noises))
    assert (found.stopped, len(undisturbed_launches(found.launches, 0.03))) == ("decided", 6)


def test_launches_on_a_gpu_that_was_held_back_do_not_count() -> None:
    bench = ScriptedBench([0.1] * 12)
    hot = Clocks(base_mhz=900, head_mhz=900, dropped=12, is_mediated=False, throttled=("heat",))
    bench.launches = [replace(x, clocks=hot) for x in bench.launches]
    found, _ = measured(bench)
    assert found.stopped == "disturbed"
    assert undisturbed_launches(found.launches, 0.03) == []


def test_a_few_pairs_without_a_steady_clock_leave_the_launch() -> None:
    bench = ScriptedBench([0.1, 0.101, 0.1, 0.099])
    few = Clocks(base_mhz=900, head_mhz=900, dropped=3, is_mediated=False)
    bench.launches = [replace(x, clocks=few) for x in bench.launches]
    found, _ = measured(bench)
    assert (found.stopped, bench.done) == ("decided", 4)


@pytest.mark.parametrize(
    ("later", "stopped", "median"), [(0.0353, "budget", "undecided"), (0.0, "decided", "pass")]
)
def test_launches_go_on_where_only_a_clock_that_moved_by_itself_makes_the_head_slower(
    later: float, stopped: str, median: str
) -> None:
    """They pass once the clock is the same for both, and end with the budget where it goes on so:
    neither fails."""
    bench = ScriptedBench([0.0352, 0.0356, 0.0354, 0.0353] + [later] * 56)
    clocks = [
        Clocks(base_mhz=1500, head_mhz=mhz, dropped=0, is_mediated=False)
        for mhz in (1480, 1502, 1480, 1500) * 15
    ]
    bench.launches = [
        replace(launch, clocks=each) for launch, each in zip(bench.launches, clocks, strict=True)
    ]
    found, _ = measured(bench, seconds=40.0)
    assert found.stopped == stopped
    assert 4 < bench.done < 60
    assert present(found.assess(GateConfig())).median == median


def test_one_control_that_trips_is_an_accident_and_two_are_a_machine() -> None:
    undecided = [0.02, 0.03, 0.01, 0.024, 0.03, 0.02, 0.035, 0.015, 0.025] * 7
    once, _ = measured(ScriptedBench(undecided), ScriptedBench([0.2] + [0.0] * 20))
    assert once.stopped != "disturbed"
    twice, _ = measured(ScriptedBench(undecided), ScriptedBench([0.2] * 20))
    assert (twice.stopped, twice.controls) == ("disturbed", (0.2, 0.2))


def test_a_likely_pass_counts_the_probes_that_follow() -> None:
    _, said = measured(ScriptedBench([0.0] * 20))
    assert said[0].seconds_left >= 24
    probing = [far for far in said if far.most_probes]
    assert [far.seconds_left for far in probing] == [float(n) for n in range(len(probing))][::-1]


def test_progress_tells_percent_and_no_logarithms() -> None:
    _, said = measured(ScriptedBench([6.1, 6.0, 6.2, 6.1]))
    assert said[-1].low > 10_000
    _, said = measured(ScriptedBench([-6.1, -6.0, -6.2, -6.1]))
    assert -100 < said[-1].low < said[-1].high < 0


def test_the_budget_pays_for_the_controls_too() -> None:
    found, _ = measured(ScriptedBench([0.1] * 9), seconds=6.0, extend=False)
    assert found.analyses == (4,)  # six launches of a second and their controls take longer
    found, _ = measured(ScriptedBench([0.1] * 9), seconds=7.1, extend=False)
    assert found.analyses == (4, 6)


@pytest.mark.parametrize("effect", [0.1, -0.1])
def test_noise_is_left_out_whichever_side_it_makes_slower(effect: float) -> None:
    found, _ = measured(ScriptedBench([0.0, 0.0, effect, 0.0, 0.0], [0.001, 0.001, 0.4, 0.001]))
    assert found.stopped == "decided"
    assert len(found.launches) == 5


def test_the_budget_may_be_spent_once_more_and_not_a_third_time() -> None:
    """Launches of the script take a second: four fit, and nine into twice as long."""
    near = [0.0, 0.03, -0.01, 0.02, 0.04, -0.03, 0.04, -0.04, 0.05, 0.0]
    bench = ScriptedBench(near)
    found, said = measured(bench, seconds=5.5)
    assert found.analyses == (4, 6, 9)
    assert 4 < bench.done <= 9
    assert [each.most for each in said][2:4] == [4, 9]
    assert min(each.seconds_left for each in said) >= 1  # a further launch, whatever is likely
    once, _ = measured(ScriptedBench(near), seconds=5.5, extend=False)
    assert (once.analyses, len(once.launches), once.stopped) == ((4,), 4, "budget")


@pytest.mark.parametrize(
    ("seconds", "effects", "launches", "decision"),
    [
        (10.0, [0.02, 0.03, 0.01, 0.024, 0.035, 0.02], 16, "undecided"),
        (1000.0, [0.0, 0.001], 2, "undecided"),
        (1000.0, [2.3, 2.31], 2, "fail"),
    ],
)
def test_a_load_that_makes_launches_long_ends_them_with_what_they_show(
    seconds: float, effects: list[float], launches: int, decision: str
) -> None:
    bench = ScriptedBench(effects * 30)
    later = [replace(each, seconds=seconds) for each in bench.launches[1:]]
    bench.launches[1:] = later
    found, _ = measured(bench)
    assert (found.stopped, bench.done) == ("budget", launches)
    assert present(found.assess(GateConfig())).decision == decision


SAME = [0.0, 0.001, -0.001, 0.0005, 0.0, 0.001, -0.001, 0.0] * 8


def test_after_a_pass_probes_make_up_the_starts() -> None:
    found, said = measured(ScriptedBench(SAME))
    assert (found.stopped, len(found.launches), len(found.probes)) == ("decided", 4, 12)
    assert found.starts == (16,)
    assert (said[-1].probes, said[-1].most_probes) == (12, 12)


def test_a_slow_start_is_measured_on_and_clean_launches_after_it_pass() -> None:
    found, _ = measured(ScriptedBench(SAME, probes=[0.0] * 5 + [0.3]))
    assert (found.stopped, len(found.probes)) == ("decided", 12)
    assert len(found.launches) + 12 == found.starts[1]
    assert present(found.assess(GateConfig())).decision == "pass"


def test_a_mode_of_the_head_is_no_pass() -> None:
    often = [0.0, 0.001, -0.001, 0.0005, *[0.0, 0.0, 0.001, -0.001, 0.2] * 12]
    found, _ = measured(ScriptedBench(often, probes=[0.0, 0.0, 0.2, 0.0, 0.2, 0.0, 0.0, 0.2]))
    assert present(found.assess(GateConfig())).decision == "undecided"
    without = present(
        measured(ScriptedBench(often), rare=0.0)[0].assess(GateConfig(rare_launches=0.0))
    )
    assert without.decision == "pass"


SLOWER = [0.077, 0.078, 0.076, 0.0775] * 15
CEILING = gate_at(GateConfig(), 12.0)


def test_after_a_fail_the_starts_go_on_that_a_waiver_needs_for_a_pass_at_its_ceiling() -> None:
    assert measured(ScriptedBench(SLOWER))[0].probes == ()
    found, _ = measured(ScriptedBench(SLOWER), waived=CEILING)
    assert (found.stopped, len(found.launches), len(found.probes)) == ("decided", 4, 12)
    beyond, _ = measured(ScriptedBench([0.2, 0.201] * 9), waived=CEILING)
    assert (beyond.stopped, len(beyond.launches), beyond.probes) == ("decided", 4, ())
    often = ScriptedBench([*SLOWER[:4], *[0.077, 0.77] * 20], probes=[0.077, 0.077, 0.77])
    assert present(measured(often, waived=CEILING)[0].assess(CEILING)).decision != "pass"


def test_after_a_fail_a_waiver_asks_for_stalls_too() -> None:
    bench = StallingBench(0.0, 1 / 600, effects=SLOWER)
    assessed = present(measured(bench, seconds=240.0, waived=CEILING)[0].assess(CEILING))
    assert (assessed.median, assessed.decision) == ("pass", "fail")
    assert max(bench.pairs) > 40


def test_probes_that_take_too_long_are_no_pass() -> None:
    class Slow(ScriptedBench):
        def probes(self, count: int, far: ProbeThresholds) -> Generator[Launch]:
            for probe in super().probes(count, far):
                yield replace(probe, seconds=40.0)

    found, _ = measured(Slow(SAME), seconds=10.0)
    assessed = present(found.assess(GateConfig()))
    assert (found.stopped, len(found.probes)) == ("budget", 2)
    assert (assessed.median, assessed.decision) == ("pass", "undecided")


def test_the_mean_of_the_inferences_is_a_test_of_its_own() -> None:
    times = histogram([1.0] * 50)
    bench = ScriptedBench(SAME)
    bench.launches = [
        replace(x, mean_effect=0.5, base_times=times, head_times=times) for x in bench.launches
    ]
    found, _ = measured(bench)
    assessed = present(found.assess(GateConfig()))
    assert (assessed.median, assessed.decision) == ("pass", "fail")


class StallingBench(ScriptedBench):
    """A model of a millisecond, whose quartets of blocks have a stall of a side by chance."""

    within_spread, start_seconds, pair_seconds = 0.001, 0.25, 0.1

    def __init__(
        self,
        base: float,
        head: float,
        ms: float = 1.0,
        seed: int = 1,
        effects: Sequence[float] = SAME,
    ) -> None:
        super().__init__([*effects] * 2)
        self.rng, self.rates, self.ms = random.Random(seed), (base, head), ms
        self.pairs: list[int] = []

    def launch(self, pairs: int) -> Launch:
        self.pairs.append(pairs)
        before, after = (
            [self.rng.random() < 100 * rate for _ in range(pairs // 2)] for rate in self.rates
        )
        seen = Stalls(
            times=5.0,
            base=sum(before),
            head=sum(after),
            base_worse=sum(a > b for a, b in zip(before, after, strict=True)),
            head_worse=sum(b > a for a, b in zip(before, after, strict=True)),
            inferences=50 * pairs,
        )
        times = histogram([self.ms] * 200)
        return replace(
            super().launch(pairs),
            head_ms=self.ms,
            mean_effect=0.0,
            base_times=times,
            head_times=times,
            stalls=(seen,),
            seconds=0.25 + 0.1 * pairs,
        )

    def probes(self, count: int, far: ProbeThresholds) -> Generator[Launch]:
        for probe in super().probes(count, far):
            yield replace(probe, mean_effect=0.0)

    def measured_by(self, seconds: float = 240.0) -> str:
        found, _ = measured(self, seconds=seconds)
        return present(found.assess(GateConfig())).decision


@pytest.mark.parametrize("seed", range(3))
def test_a_fast_model_whose_stalls_may_be_the_heads_runs_on_until_they_fail(seed: int) -> None:
    bench = StallingBench(0.0, 1 / 600, seed=seed)
    assert bench.measured_by() == "fail"
    assert max(bench.pairs) > 40


def test_stalls_that_the_machine_has_on_either_side_cost_a_part_of_the_budget() -> None:
    """The first launches take a tenth of `gate.seconds` at most, a doubt a quarter."""
    quiet = StallingBench(0.0, 0.0)
    assert (quiet.measured_by(), quiet.pairs) == ("pass", [12, 26, 26, 26])
    busy = StallingBench(1 / 400, 1 / 400)
    assert busy.measured_by() != "fail"
    assert sum(0.25 + 0.1 * pairs for pairs in busy.pairs) < 0.35 * 240


def test_stalls_that_no_seconds_are_left_for_stay_open() -> None:
    bench = StallingBench(0.0, 1 / 400)
    assert bench.measured_by(seconds=4.0) == "undecided"
    assert sum(0.25 + 0.1 * pairs for pairs in bench.pairs) < 12


@pytest.mark.parametrize(("seconds", "most"), [(240.0, 24), (5.0, 12), (1.0, 12)])
def test_a_slow_model_is_not_run_on_for_its_stalls(seconds: float, most: int) -> None:
    """Where its seconds pay for less, its launches are short from the second on."""
    bench = StallingBench(0.0, 1 / 600, ms=20.0)
    bench.measured_by(seconds)
    assert max(bench.pairs) <= most
    assert (min(bench.pairs[:4]) == 4) == (seconds == 1.0)


def test_a_short_look_that_gives_no_number_is_no_pass() -> None:
    with pytest.raises(MeasurementError, match="gave no number"):
        measured(ScriptedBench(SAME, probes=[0.0, math.nan]))


PAIRS = 12


def test_every_launch_of_every_run_has_inputs_of_its_own() -> None:
    seeds = {launch_order(seed, n, PAIRS).inputs for seed in range(20) for n in range(20)}
    assert len(seeds) == 400


def test_pairs_are_quartets_from_a_random_start() -> None:
    orders = [launch_order(seed, 1, PAIRS).blocks for seed in range(50)]
    for blocks in orders:
        assert len(blocks) == PAIRS
        assert all(blocks[n] == other_side(blocks[n - 1]) for n in range(1, PAIRS, 2))
    assert len(set(orders)) > 30


def test_either_side_starts_first_in_half_of_the_launches() -> None:
    processes = [launch_order(1, n, PAIRS).processes for n in range(400)]
    assert {tuple(sorted(each)) for each in processes} == {("base", "head")}
    assert 160 < sum(each[0] == "head" for each in processes) < 240


@pytest.mark.parametrize("cases", [1, 3, 16])
def test_launches_take_the_cases_in_turn_from_one_by_chance(cases: int) -> None:
    """Else a head that is slow in one of many may never be timed in it."""
    taken = [[launch_order(seed, n, 4).case % cases for n in range(cases)] for seed in range(60)]
    assert all(sorted(each) == list(range(cases)) for each in taken)
    assert len({each[0] for each in taken}) > cases // 2


def blocks(*base_and_head: tuple[list[float], list[float]]) -> Blocks:
    found = Blocks()
    for base, head in base_and_head:
        found.add("base", base, None)
        found.add("head", head, None)
    return found


def test_every_block_has_its_median_and_its_mean() -> None:
    found = blocks(([1.0, 2.0, 6.0], [4.0, 4.0, 4.0]), ([2.0, 2.0, 2.0], [1.0, 2.0, 9.0]))
    assert found.counted_medians() == ([2.0, 2.0], [4.0, 2.0])
    assert found.counted_means() == ([3.0, 2.0], [4.0, 4.0])
    assert found.times("head") == [4.0, 4.0, 4.0, 1.0, 2.0, 9.0]
    assert (found.pairs, found.clocks()) == (2, None)


def test_pairs_whose_clock_moved_do_not_count() -> None:
    found = Blocks()
    for number, mhz in enumerate([1500] * 7 + [900]):
        found.add("base", [float(number)], GpuState(sm_mhz=1500))
        found.add("head", [float(number)], GpuState(sm_mhz=mhz))
    assert found.pairs == 8
    assert found.times("head") == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert present(found.clocks()).dropped == 1


def test_where_no_pair_counts_all_are_told() -> None:
    found = Blocks()
    found.add("base", [1.0], GpuState(sm_mhz=1500, throttled=("sync boost",)))
    found.add("head", [2.0], GpuState(sm_mhz=900, throttled=("thermal",)))
    assert (found.times("base"), found.times("head")) == ([1.0], [2.0])


@pytest.mark.parametrize(
    ("before", "after", "used"),
    [
        (EnergyReading(5.0, "rapl"), EnergyReading(7.5, "rapl"), (2.5, 20, "rapl")),
        (None, EnergyReading(1.0, "rapl"), None),
        (EnergyReading(1.0, "rapl"), None, None),
        (EnergyReading(1.0, "rapl+nvml"), EnergyReading(2.0, "nvml"), None),
    ],
)
def test_a_block_used_what_the_counter_went_on_by_unless_it_falls_silent(
    before: EnergyReading | None, after: EnergyReading | None, used: tuple[object, ...] | None
) -> None:
    assert block_energy(before, after, 20) == used


def test_an_inference_used_its_share_of_all_blocks() -> None:
    found = present(side_energy([BlockEnergy(2.0, 10, "rapl"), BlockEnergy(4.0, 30, "rapl")]))
    assert found.joules == pytest.approx(0.15)
    assert found.source == "rapl"


def test_half_of_the_blocks_or_a_counter_that_stands_still_are_no_measurement() -> None:
    assert side_energy([BlockEnergy(2.0, 10, "rapl"), None]) is None
    assert side_energy([BlockEnergy(0.0, 10, "nvml")]) is None
    assert side_energy([]) is None


@pytest.mark.parametrize(
    ("inference_ms", "turns"), [(0.01, (100, 6)), (6.0, (5, 6)), (500.0, (2, 2)), (5000.0, (2, 1))]
)
def test_a_slow_model_has_fewer_turns(inference_ms: float, turns: tuple[int, int]) -> None:
    assert paired_launches.turns_of(inference_ms) == turns
