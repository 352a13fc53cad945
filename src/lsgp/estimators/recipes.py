# SPDX-License-Identifier: BSD-3-Clause
"""Regressors by name: the paper's, and kriging with a known variogram."""

from __future__ import annotations

from typing import Self

from numpy.typing import ArrayLike

from lsgp.estimators.settings import EstimatorSettings
from lsgp.inputs.given import Columns, GivenKernel
from lsgp.inputs.recipes import Kriging, kriging_settings, paper_settings


class Recipes(EstimatorSettings):
    """Settings that others have names for."""

    @classmethod
    def paper(
        cls,
        *,
        bandwidth: float | str,
        lengthscale: ArrayLike,
        signal_variance: float,
        noise_variance: float,
        kernel: GivenKernel = "rbf",
        localizer: str = "epanechnikov",
        n_neighbors: int | str = "auto",
    ) -> Self:
        """Exactly Algorithm 1 of the paper, with its constants; not fitted, and nothing tuned.

        Neighbors are the points with ‖x − x₀‖ ≤ h, their weights k(‖x − x₀‖/h)/h; there is no
        trend, and neither inputs nor targets are scaled. Its predictive variance is that of the
        latent function: ``predict(X, return_std=True, kind="latent")``.

        Parameters
        ----------
        bandwidth : float or "adaptive"
            h, or the distance of the last of ``n_neighbors``, as in its experiments on UCI data.
        lengthscale : float or array of shape (d,)
            Of the kernel: exp(−‖x − x′‖²/(2ℓ²)).
        signal_variance, noise_variance : float
            K(x, x) and σ², both in the units of y².
        kernel, localizer, n_neighbors
            As of the estimator.

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp import LSGPRegressor
        >>> X, y = np.array([[0.0], [0.4], [1.0]]), np.array([1.0, 2.0, 0.0])
        >>> model = LSGPRegressor.paper(
        ...     bandwidth=0.5, lengthscale=0.3, signal_variance=2.0, noise_variance=0.1
        ... ).fit(X, y)
        >>> mean, std = model.predict([[0.2]], return_std=True, kind="latent")
        >>> u = np.array([0.2, 0.2]) / 0.5  # the third point is not in the ball
        >>> W = np.diag(0.75 * (1 - u**2) / 0.5)
        >>> K = 2.0 * np.exp(-((X[:2] - X[:2].T) ** 2) / (2 * 0.3**2))
        >>> k = 2.0 * np.exp(-((X[:2, 0] - 0.2) ** 2) / (2 * 0.3**2))
        >>> by_hand = k @ np.linalg.solve(K + 0.1 * np.linalg.inv(W), y[:2])
        >>> print(f"{mean[0]:.6f} {by_hand:.6f}")
        1.655790 1.655790
        """
        return cls(
            **paper_settings(
                bandwidth,
                lengthscale,
                signal_variance,
                noise_variance,
                kernel,
                localizer,
                n_neighbors,
            )
        )

    @classmethod
    def kriging(
        cls,
        *,
        range: ArrayLike,
        sill: float | None = None,
        psill: float | None = None,
        nugget: float = 0.0,
        model: str = "exponential",
        smoothness: float = 1.5,
        range_convention: str = "effective",
        kind: str | None = None,
        drift: str | None = "constant",
        mean: float | None = None,
        anisotropy: tuple[float, float] | None = None,
        anisotropic_features: Columns | None = None,
        sphere: Columns | None = None,
        n_neighbors: int | str = "auto",
        search_radius: float | None = None,
    ) -> Self:
        """Kriging with a known variogram; not fitted, and nothing tuned.

        gstat's ``vgm(psill, "Sph", range, nugget)`` is ``kriging(model="spherical", psill=psill,
        range=range, nugget=nugget)``; of its "Exp", "Gau" and "Mat", with
        ``range_convention="scale"``.

        Parameters
        ----------
        range : float or array of shape (d,)
            One per input for a variogram that is anisotropic along the axes. On the sphere, in
            kilometers.
        sill : float
            Plateau of the variogram, nugget included, in the units of y².
        psill : float
            The plateau without the nugget, instead: the partial sill.
        nugget : float
        model : {"spherical", "exponential", "gaussian", "matern", "matern32", "matern52"}
        smoothness : {0.5, 1.5, 2.5}
            ν of "matern".
        range_convention : {"effective", "scale"}
            "effective": where the variogram has risen by 95 % of the partial sill. "scale", as
            gstat has it: a of exp(−h/a), exp(−(h/a)²), and Matérn's (h/a)^ν K_ν(h/a). The range of
            a spherical one is where it ends, by either.
        kind : {"simple", "ordinary", "universal"}, default=None
            Simple kriging about ``mean``, ordinary kriging, or universal kriging with a linear
            drift; None: by ``drift``.
        drift : {"constant", "linear", "none"} or None
            The same by the drift: ordinary kriging, universal kriging, or simple kriging.
        mean : float, default=None
            Of simple kriging; None: 0.
        anisotropy : pair of floats, default=None
            (angle, ratio) as gstat's ``anis``: degrees clockwise from north of the longest range,
            which is ``range``, and the range across over it.
        anisotropic_features, sphere
            As of the estimator.
        n_neighbors : int or "auto"
            The nearest points, which count fully.
        search_radius : float, default=None
            All points within it, instead of a number of them.

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp import LSGPRegressor
        >>> X, y = np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 2.0, 0.0])
        >>> model = LSGPRegressor.kriging(sill=2.0, range=6.0, nugget=0.5, drift=None).fit(X, y)
        >>> mean, std = model.predict([[2.0]], return_std=True, kind="latent")
        >>> a = 6.0 / -np.log(0.05)
        >>> C = 1.5 * np.exp(-np.abs(X - X.T) / a) + 0.5 * np.eye(3)
        >>> c = 1.5 * np.exp(-np.abs(X[:, 0] - 2.0) / a)
        >>> print(f"{mean[0]:.6f} {c @ np.linalg.solve(C, y):.6f}")
        0.721190 0.721190
        """
        given = Kriging(
            model=model,
            sill=sill,
            psill=psill,
            range=range,
            nugget=nugget,
            smoothness=smoothness,
            range_convention=range_convention,
            kind=kind,
            drift=drift,
            mean=mean,
            anisotropy=anisotropy,
            anisotropic_features=anisotropic_features,
            sphere=sphere,
            n_neighbors=n_neighbors,
            search_radius=search_radius,
        )
        return cls(**kriging_settings(given))
