"""The options of the commands that measure and judge."""

from __future__ import annotations

import argparse
from pathlib import Path

from tunegate.argument_values import not_negative, positive, seed, shape


def add_gate_options(command: str, options: argparse.ArgumentParser) -> None:
    """Those of `bench-rules`, `selftest`, `confirm`, `compare`, `run`
    and `gate`; none for others."""
    if command == "bench-rules":
        options.add_argument(
            "--data", type=Path, required=True, metavar="FILE", help="recorded launches, .npz"
        )
    if command in {"run", "gate", "compare"}:
        _add_metric(options)
        options.add_argument(
            "--seed",
            type=seed,
            metavar="N",
            help="of an earlier report: the same inputs in the same order; default: new ones",
        )
    if command == "selftest":
        _add_selftest(options)
    if command == "confirm":
        options.add_argument("compared", nargs=2, metavar="VERDICT", help="two verdict.json files")
    if command == "compare":
        options.add_argument(
            "compared",
            nargs=2,
            metavar="A",
            help="base and head: ONNX files (tvm:FILE or onnxruntime:FILE for one runtime), "
            "directories with an artifact.json, or with --commands two command lines",
        )
        options.add_argument(
            "--commands",
            action="store_true",
            dest="are_commands",
            help="run A and B; each prints latencies in milliseconds, one in a line",
        )
        _add_shape(options)


def _add_metric(options: argparse.ArgumentParser) -> None:
    # Not a key of the file: a pull request would choose what runs on the runner.
    options.add_argument(
        "--metric-command",
        metavar="COMMAND",
        default="",
        help="gets an artifact's directory as its last argument, prints a number; more is better",
    )
    options.add_argument(
        "--metric-margin",
        type=not_negative,
        metavar="N",
        default=0.0,
        help="how much less is no fault; default: 0",
    )


def _add_shape(options: argparse.ArgumentParser) -> None:
    options.add_argument(
        "--shape",
        type=shape,
        action="append",
        dest="shapes",
        metavar="INPUT=1,3,224,224",
        help="the full shape of a dynamic input",
    )


def _add_selftest(options: argparse.ArgumentParser) -> None:
    options.add_argument("--model", type=Path, metavar="FILE", help="default: a light SqueezeNet")
    options.add_argument(
        "--minutes",
        type=positive,
        metavar="N",
        dest="selftest_minutes",
        default=10.0,
        help="default: 10",
    )
    _add_shape(options)
