# SPDX-License-Identifier: BSD-3-Clause
"""Numbers as the report shows them."""

from __future__ import annotations

import math

from reproduction.comparison import Summary


def format_error(value: float) -> str:
    """Three significant digits, and at least two decimals above 1.

    Examples
    --------
    >>> from reproduction.numbers import format_error
    >>> format_error(57.8), format_error(0.2281), format_error(0.00502)
    ('57.80', '0.228', '0.00502')
    """
    if not math.isfinite(value):
        return "–"
    if abs(value) >= 1 or value == 0:
        return f"{value:.2f}"
    return f"{value:.{min(2 - math.floor(math.log10(abs(value))), 8)}f}"


def format_summary(summary: Summary) -> str:
    """Mean ± standard deviation, with the decimals of the mean."""
    mean = format_error(summary.mean)
    if not math.isfinite(summary.std):
        return mean
    decimals = len(mean.partition(".")[2])
    return f"{mean} ± {summary.std:.{decimals}f}"


def format_change(value: float, reference: float) -> str:
    """The relative change in percent, with a decimal where it would round to all.

    Examples
    --------
    >>> from reproduction.numbers import format_change
    >>> format_change(3.0, 4.0), format_change(0.2, 50.0)
    ('−25 %', '−99.6 %')
    """
    percent = 100.0 * (value / reference - 1.0)
    sign = "−" if percent < 0 else "+"
    return f"{sign}{abs(percent):.{1 if percent < -99 else 0}f} %"


def format_p(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else "–"
