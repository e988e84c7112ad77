"""Lines of a history: months of one model, with two releases, a failure and a name that lies."""

from tunegate.artifacts.history import HistoryEntry, ModelCost
from tunegate.artifacts.measurements import Interval
from tunegate.artifacts.verdicts import Status

START = 1_780_000_000
DAY = 86_400
COST = ModelCost(
    tasks=10,
    hits=7.5,
    transfers=1,
    trials=32,
    seconds=60,
    usd=0.02,
    gate_seconds=90,
    gate_usd=0.03,
    saved_trials=128,
    saved_seconds=240,
    saved_usd=0.08,
    gained_ms=0.25,
)
"""The cost of each of them."""
RELEASES = {4: "v1.2.0", 17: "v1.3.0"}

REQUESTS = (5, 12)
"""The runs of pull requests; the others are of the default branch."""


def entry(at: int, **fields: object) -> HistoryEntry:
    wanted = {
        "at": START + at * DAY,
        "commit": f"{at:02x}" * 20,
        "model": "models/squeezenet.onnx",
        "target": "cpu",
        "device": "AMD EPYC 7B13",
        "runtime": "tvm",
        "status": "pass",
        "base_ms": 8.0,
        "head_ms": 8.0,
        "change_percent": Interval(low=-0.4, center=0.1, high=0.5),
        "repository": "acme/vision",
        "change": None,
        "authored": START + at * DAY - 3600,
        "run_url": f"https://ci.example/runs/{at}",
        "target_key": "0123456789abcdef",
        "versions": {"apache-tvm": "0.24.0" if at < 9 else "0.25.0", "tunegate": "0.1.0"},
        "cost": COST,
    }
    return HistoryEntry(**(wanted | fields))  # type: ignore[arg-type]  # a builder


def history() -> tuple[HistoryEntry, ...]:
    main = []
    for at in range(24):
        status: Status = "fail" if at == 12 else "waived" if at == 18 else "pass"
        head_ms = 8.0 + 0.05 * (at % 3) + (4.4 if at == 12 else 0) - (1.5 if at > 15 else 0)
        release = RELEASES.get(at, "")
        change = 40 + at if at in REQUESTS else None
        main.append(entry(at, status=status, head_ms=head_ms, release=release, change=change))
    hostile = entry(
        3,
        model="models/<script>alert(1)</script>\u202e.onnx",
        device='"><img src=x>',
        release="v$\\frac{1}{0}$" * 9,
        status="new",
        base_ms=None,
        change_percent=None,
    )
    warmed = entry(
        2, status="warmed", base_ms=None, head_ms=None, change_percent=None, run_url="", versions={}
    )
    old = entry(
        0, model="models/old.onnx", repository="", change=None, authored=None, run_url="", cost=None
    )
    return (*main, warmed, old, entry(5, target="gpu", device="NVIDIA H200", head_ms=0.4), hostile)
