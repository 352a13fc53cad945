# SPDX-License-Identifier: BSD-3-Clause
"""Functions drawn from the prior as sums of waves (random Fourier features).

By Bochner's theorem a stationary correlation is rho(h) = E cos(w·h) of random frequencies w, so

    f(z) = Σ_j s_j (a_j cos(w_j·z) + b_j sin(w_j·z)),   a_j, b_j standard normal,

has that covariance over random frequencies, and is Gaussian given the frequencies. Data determine
the low frequencies of a function and leave the high ones open. The kernel's density has few high
frequencies: with frequencies drawn from it, the error between close neighbors would consist of a
handful of waves. So frequencies are drawn from a mixture of the density at finer and finer scales,
and the amplitudes s_j are importance weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.stats import qmc

from lsgp.method.kernels import SumKernel

Array = NDArray[np.float64]

#: Waves at each scale; Sobol points need a power of two.
WAVES_PER_SCALE = 512
#: Ratio of each scale to the next coarser one.
SCALE_STEP = 0.5
MOST_SCALES = 12
#: Points for which all waves are computed at a time, so that they stay in the cache.
_POINTS_AT_A_TIME = 240
#: Rows of one matrix product: a multiple of the tiles of BLAS libraries on any processor.
_TILE = 48


@dataclass(frozen=True)
class Spectrum:
    """The spectral density of a kernel, and the Student-t from which frequencies are drawn."""

    dof: float  # of the Student-t; infinite for the normal distribution
    log_density: Callable[[Array], Array]  # spectral density of frequencies (k, e)
    scale: float = 1.0  # of the widest Student-t
    n_dimensions: int | None = None  # e; None for the number of inputs


def _student(dof: float) -> Spectrum:
    return Spectrum(dof, lambda w: _log_student(w, dof))


def _log_student(w: Array, dof: float) -> Array:
    d, square = w.shape[1], (w * w).sum(axis=1)
    if math.isinf(dof):
        return np.asarray(-0.5 * square - 0.5 * d * math.log(2.0 * math.pi))
    constant = special.gammaln(0.5 * (dof + d)) - special.gammaln(0.5 * dof)
    constant -= 0.5 * d * math.log(dof * math.pi)
    return np.asarray(constant - 0.5 * (dof + d) * np.log1p(square / dof))


def _log_spherical(w: Array) -> Array:
    """Log spectral density of the spherical kernel in three dimensions.

    The kernel is the overlap of two balls of diameter 1, so its density is the squared Fourier
    transform of a ball, over (2 pi)³ times the ball's volume.
    """
    size = np.sqrt((w * w).sum(axis=1))
    u = 0.5 * size  # the radius is 1/2
    small = u < 0.05
    safe = np.where(small, 1.0, u)
    # 3 (sin u - u cos u) / u³; by its series near 0, where the difference cancels.
    wave = np.where(small, 1.0 - u * u / 10.0, 3.0 * (np.sin(safe) - safe * np.cos(safe)) / safe**3)
    volume = math.pi / 6.0
    with np.errstate(divide="ignore"):
        return np.asarray(2.0 * np.log(np.abs(wave)) + math.log(volume / (2.0 * math.pi) ** 3))


#: Spectrum of each kernel, by name. The density of a Matérn kernel of smoothness nu is a Student-t
#: with 2 nu degrees of freedom. Waves of the spherical kernel in fewer than three dimensions are
#: those in space, cut by a plane or a line; its density falls off like that of `matern12`.
SPECTRA: dict[str, Spectrum] = {
    "rbf": _student(math.inf),
    "matern12": _student(1.0),
    "matern32": _student(3.0),
    "matern52": _student(5.0),
    "spherical": Spectrum(1.0, _log_spherical, scale=0.4, n_dimensions=3),
}


@dataclass(frozen=True)
class Waves:
    """Frequencies and amplitudes from which any number of functions are drawn."""

    frequency: Array  # (k, d)
    amplitude: Array  # (k,)

    def draw(self, rng: np.random.Generator) -> Array:
        """Draw a function, as its coefficients of cosines and sines (2, k)."""
        return self.amplitude * rng.standard_normal((2, len(self.amplitude)))

    def evaluate(self, z: Array, functions: Array) -> Array:
        """Evaluate functions (c, 2, k) at scaled points (p, d); returns values (p, c)."""
        values = np.empty((len(z), len(functions)))
        for start in range(0, len(z), _POINTS_AT_A_TIME):
            part = slice(start, min(start + _POINTS_AT_A_TIME, len(z)))
            values[part] = self._evaluate_tiles(z[part], functions)
        return values

    def _evaluate_tiles(self, z: Array, functions: Array) -> Array:
        """As `evaluate` for few points; each value is the same to the bit whatever the others.

        BLAS libraries sum the rows of an incomplete tile, and of small matrices, in another order.
        So points are padded until all matrices have the same shape.
        """
        n_full = -(-len(z) // _TILE) * _TILE
        phase = np.zeros((n_full, len(self.amplitude)))
        for along, frequency in zip(z.T, self.frequency.T, strict=True):
            phase[: len(z)] += along[:, None] * frequency
        if len(functions) == 1:
            # One cosine with a shifted phase instead of a cosine and a sine.
            cosine, sine = functions[0]
            phase -= np.arctan2(sine, cosine)
            found = _multiply_tiles(np.cos(phase, out=phase), np.hypot(cosine, sine)[:, None])
        else:
            found = _multiply_tiles(np.cos(phase), functions[:, 0].T)
            found += _multiply_tiles(np.sin(phase, out=phase), functions[:, 1].T)
        return found[: len(z)]


def _multiply_tiles(rows: Array, columns: Array) -> Array:
    """Multiply two matrices, one tile of rows at a time."""
    tiles = [rows[k : k + _TILE] @ columns for k in range(0, len(rows), _TILE)]
    return np.concatenate(tiles)


def draw_waves(
    kernel: str | SumKernel, n_inputs: int, finest: float, rng: np.random.Generator
) -> Waves:
    """Draw waves of a kernel, down to the ``finest`` scale that matters, in lengthscales."""
    if isinstance(kernel, SumKernel):  # waves of both correlations, whose variances add up
        s, ratios = kernel.share, np.array(kernel.ratios)
        one = draw_waves(kernel.names[0], n_inputs, finest, rng)
        # The finest scale in lengthscales of the second: that of the input with the largest ratio.
        other = draw_waves(kernel.names[1], n_inputs, finest / ratios.max(), rng)
        return Waves(
            np.concatenate([one.frequency, other.frequency / ratios]),
            np.concatenate([math.sqrt(1.0 - s) * one.amplitude, math.sqrt(s) * other.amplitude]),
        )
    assert isinstance(kernel, str), f"{kernel} has no waves"
    spectrum = SPECTRA[kernel]
    d = spectrum.n_dimensions or n_inputs
    scales = _scales(spectrum, finest)
    frequency = np.concatenate([_draw_student(spectrum.dof, d, rng) / scale for scale in scales])
    drawn_from = np.logaddexp.reduce(
        [_log_student(scale * frequency, spectrum.dof) + d * np.log(scale) for scale in scales]
    )
    log_weight = spectrum.log_density(frequency) - drawn_from - np.log(WAVES_PER_SCALE)
    return Waves(np.ascontiguousarray(frequency[:, :n_inputs]), np.exp(0.5 * log_weight))


def _scales(spectrum: Spectrum, finest: float) -> Array:
    n_scales = 1 + int(np.clip(np.ceil(np.log(finest) / np.log(SCALE_STEP)), 0, MOST_SCALES - 1))
    if math.isinf(spectrum.dof):
        # The density of the Gaussian kernel vanishes at finer scales.
        n_scales = min(n_scales, 3)
    return np.asarray(spectrum.scale * SCALE_STEP ** np.arange(n_scales))


def _draw_student(dof: float, d: int, rng: np.random.Generator) -> Array:
    """Draw quasi-random points of a Student-t, (WAVES_PER_SCALE, d)."""
    points = qmc.Sobol(d + 1, rng=rng).random(WAVES_PER_SCALE)
    points = np.clip(points, 1e-12, 1.0 - 1e-12)
    normal = special.ndtri(points[:, :d])
    if math.isinf(dof):
        return np.asarray(normal)
    chi_square = special.chdtri(dof, 1.0 - points[:, d])
    return np.asarray(normal / np.sqrt(chi_square / dof)[:, None])
