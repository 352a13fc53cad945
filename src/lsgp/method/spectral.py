# SPDX-License-Identifier: BSD-3-Clause
"""Functions drawn from the prior, as sums of waves: a kernel is the transform of a density.

By Bochner's theorem a stationary correlation is rho(h) = E cos(w·h) of random frequencies w, so

    f(z) = Σ_j s_j (a_j cos(w_j·z) + b_j sin(w_j·z)),   a_j, b_j standard normal,

has that covariance over frequencies, and is Gaussian given them. What data leave open of a function
is its high frequencies, of which the kernel's density has few: with frequencies drawn from it, an
error between close neighbors would be made of a handful of waves. So they are drawn from a mixture
of the same density at finer and finer scales, and the amplitudes s_j make up for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.stats import qmc

from lsgp.method.kernels import Composite
from lsgp.method.sum_kernel import SumKernel

Array = NDArray[np.float64]

#: Waves at each scale, a power of two as Sobol's points ask for.
WAVES_PER_SCALE = 512
#: From one scale to the next finer one.
SCALE_STEP = 0.5
MOST_SCALES = 12
#: Points for which all waves are computed at a time: they stay in the cache.
_POINTS_AT_A_TIME = 240
#: Points of one product of matrices: a multiple of what libraries of any processor have in a tile.
_TILE = 48


@dataclass(frozen=True)
class Spectrum:
    """The density of the frequencies of a kernel, and another one to draw them from."""

    dof: float  # of the Student-t that is drawn from; infinite: normal
    log_density: Callable[[Array], Array]  # of frequencies (k, e)
    scale: float = 1.0  # of the widest Student-t
    n_dimensions: int | None = None  # e, where it is not that of the inputs


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
    """Of the spherical kernel in three dimensions: it is the overlap of two balls of diameter 1.

    So its density is the squared transform of a ball, over (2 pi)³ times the ball's volume.
    """
    size = np.sqrt((w * w).sum(axis=1))
    u = 0.5 * size  # of radius 1/2
    small = u < 0.05
    safe = np.where(small, 1.0, u)
    # 3 (sin u - u cos u) / u³, by its series near 0, where digits are lost.
    wave = np.where(small, 1.0 - u * u / 10.0, 3.0 * (np.sin(safe) - safe * np.cos(safe)) / safe**3)
    volume = math.pi / 6.0
    with np.errstate(divide="ignore"):
        return np.asarray(2.0 * np.log(np.abs(wave)) + math.log(volume / (2.0 * math.pi) ** 3))


#: By the kernel's name. That of a Matérn kernel of smoothness nu is a Student-t of 2 nu. The
#: spherical kernel in a plane is that of a plane in space; its density falls as that of `matern12`.
SPECTRA: dict[str, Spectrum] = {
    "rbf": _student(math.inf),
    "matern12": _student(1.0),
    "matern32": _student(3.0),
    "matern52": _student(5.0),
    "spherical": Spectrum(1.0, _log_spherical, scale=0.4, n_dimensions=3),
}


@dataclass(frozen=True)
class Waves:
    """Frequencies that several functions share."""

    frequency: Array  # (k, d)
    amplitude: Array  # (k,)

    def draw(self, rng: np.random.Generator) -> Array:
        """A function: its coefficients of cosines and sines, (2, k)."""
        return self.amplitude * rng.standard_normal((2, len(self.amplitude)))

    def evaluate(self, z: Array, functions: Array) -> Array:
        """Values (p, c) at scaled points (p, d) of functions (c, 2, k)."""
        values = np.empty((len(z), len(functions)))
        for start in range(0, len(z), _POINTS_AT_A_TIME):
            part = slice(start, min(start + _POINTS_AT_A_TIME, len(z)))
            values[part] = self._evaluate_tiles(z[part], functions)
        return values

    def _evaluate_tiles(self, z: Array, functions: Array) -> Array:
        """The same of points that are few, to bits that do not depend on which others there are.

        Libraries add up the last rows of a matrix, which fill no tile, in an order of their own,
        and all rows of a small one in another: so all matrices have the same shape.
        """
        n_full = -(-len(z) // _TILE) * _TILE
        phase = np.zeros((n_full, len(self.amplitude)))
        for along, frequency in zip(z.T, self.frequency.T, strict=True):
            phase[: len(z)] += along[:, None] * frequency
        if len(functions) == 1:
            # One wave of a shifted phase instead of two.
            cosine, sine = functions[0]
            phase -= np.arctan2(sine, cosine)
            found = _multiply_tiles(np.cos(phase, out=phase), np.hypot(cosine, sine)[:, None])
        else:
            found = _multiply_tiles(np.cos(phase), functions[:, 0].T)
            found += _multiply_tiles(np.sin(phase, out=phase), functions[:, 1].T)
        return found[: len(z)]


def _multiply_tiles(rows: Array, columns: Array) -> Array:
    """The product of matrices, by tiles of rows."""
    tiles = [rows[k : k + _TILE] @ columns for k in range(0, len(rows), _TILE)]
    return np.concatenate(tiles)


def draw_waves(
    kernel: str | Composite, n_inputs: int, finest: float, rng: np.random.Generator
) -> Waves:
    """Waves of a kernel, down to the ``finest`` scale, in lengthscales, that matters."""
    if isinstance(kernel, SumKernel):
        return _draw_waves_of_both(kernel, n_inputs, finest, rng)
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


def _draw_waves_of_both(
    kernel: SumKernel, n_inputs: int, finest: float, rng: np.random.Generator
) -> Waves:
    """Waves of each of the two, whose variances add up."""
    s, ratios = kernel.share, np.array(kernel.ratios)
    one = draw_waves(kernel.names[0], n_inputs, finest, rng)
    # In lengthscales of the other, the finest scale is that of the input that these are longest of.
    other = draw_waves(kernel.names[1], n_inputs, finest / ratios.max(), rng)
    return Waves(
        np.concatenate([one.frequency, other.frequency / ratios]),
        np.concatenate([math.sqrt(1.0 - s) * one.amplitude, math.sqrt(s) * other.amplitude]),
    )


def _scales(spectrum: Spectrum, finest: float) -> Array:
    n_scales = 1 + int(np.clip(np.ceil(np.log(finest) / np.log(SCALE_STEP)), 0, MOST_SCALES - 1))
    if math.isinf(spectrum.dof):
        # Its density has nothing at finer scales.
        n_scales = min(n_scales, 3)
    return np.asarray(spectrum.scale * SCALE_STEP ** np.arange(n_scales))


def _draw_student(dof: float, d: int, rng: np.random.Generator) -> Array:
    """Evenly spread points of a Student-t, (WAVES_PER_SCALE, d)."""
    points = qmc.Sobol(d + 1, rng=rng).random(WAVES_PER_SCALE)
    points = np.clip(points, 1e-12, 1.0 - 1e-12)
    normal = special.ndtri(points[:, :d])
    if math.isinf(dof):
        return np.asarray(normal)
    chi_square = special.chdtri(dof, 1.0 - points[:, d])
    return np.asarray(normal / np.sqrt(chi_square / dof)[:, None])
