"""Matplotlib, loaded where no file of a checkout can configure it.

It reads `matplotlibrc` of the working directory, which may name a module
to import or a program to run.
"""

from __future__ import annotations

import contextlib

with contextlib.chdir("/"):
    import matplotlib as mpl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

__all__ = ["Axes", "Figure", "MaxNLocator", "mpl"]
