"""Tries whether drawn images make a detector's scores lie further apart than rounding.

    python -m benchmarks.real_models.detector_draws MODEL.onnx [--side 320] [--best 100]
        [--images 3] [--save detector_draws]

MODEL.onnx gives [1, 4 + classes, boxes], as YOLO exports do before they pick the best boxes, for
example the wheel nudenet 3.4.2. For each way to draw an image it prints the largest score, the
least of the best, and how many of these are closer to their neighbour than ONNX Runtime with all
optimizations is to itself without: their order is rounding. Nothing is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.kit.command import command_line
from benchmarks.kit.tables import heading, row
from tunegate.models.reference.session import NO_OPTIMIZATION, ReferenceSession

Image = npt.NDArray[Any]
Draw = Callable[[np.random.Generator, int], Image]
_BOX = 4
"""The numbers of a box, before its scores."""


def _like_photographs(rng: np.random.Generator, side: int) -> Image:
    """The spectrum of photographs: amplitudes fall with the frequency."""
    squares = np.fft.rfftfreq(side)[None, :] ** 2 + np.fft.fftfreq(side)[:, None] ** 2
    amplitudes = 1 / np.sqrt(squares + 1e-5)
    spectra = amplitudes * np.exp(2j * np.pi * rng.random((3, *amplitudes.shape)))
    image = np.fft.irfft2(spectra, s=(side, side))
    return np.asarray((image - image.min()) / (image.max() - image.min()))


def _rectangles(rng: np.random.Generator, side: int) -> Image:
    image = np.full((3, side, side), 0.5)
    for _ in range(30):
        top, left = rng.integers(0, side, 2)
        height, width = rng.integers(5, side // 2, 2)
        image[:, top : top + height, left : left + width] = rng.random((3, 1, 1))
    return image


def _patches(rng: np.random.Generator, side: int) -> Image:
    patches: Image = np.kron(rng.random((3, side // 8, side // 8)), np.ones((1, 8, 8)))
    return patches


DRAWS: dict[str, Draw] = {
    "standard normal": lambda rng, side: rng.standard_normal((3, side, side)),
    "normal, ten times as wide": lambda rng, side: 10 * rng.standard_normal((3, side, side)),
    "uniform 0 to 1": lambda rng, side: rng.random((3, side, side)),
    "uniform 0 to 1 in patches": _patches,
    "spectrum of photographs, 0 to 1": _like_photographs,
    "rectangles, 0 to 1": _rectangles,
    "uniform 0 to 255": lambda rng, side: 255 * rng.random((3, side, side)),
}


def main() -> None:
    options = command_line(__doc__, ("model", Path), side=320, best=100, images=3)
    optimized = ReferenceSession(options.model)
    written = ReferenceSession(options.model, level=NO_OPTIMIZATION)
    heading(f"images | largest score | the last of {options.best} | order is rounding")
    for name, draw in DRAWS.items():
        found = []
        for seed in range(options.images):
            image = draw(np.random.default_rng(seed), options.side)[None].astype("float32")
            one, other = (
                np.asarray(each.run({"images": image})[0])[0, _BOX:].max(axis=0)
                for each in (written, optimized)
            )
            order = np.argsort(one)[::-1][: options.best]
            noise = np.abs(one - other)[order]
            best = one[order]
            is_rounding = best[:-1] - best[1:] <= np.maximum(noise[:-1], noise[1:])
            found.append((best[0], best[-1], is_rounding.sum()))
        largest, last, count = (float(np.median(each)) for each in zip(*found, strict=True))
        row(name, f"{largest:.2g}", f"{last:.2g}", f"{count:.0f} of {options.best - 1}")


if __name__ == "__main__":
    main()
