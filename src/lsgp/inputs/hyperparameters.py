# SPDX-License-Identifier: BSD-3-Clause
"""Hyperparameters that are given, in the units of the data."""

from __future__ import annotations

from typing import Any

from lsgp.inputs.setting import Frozen, Setting
from lsgp.inputs.values import Values, one_of, positive, read_list


def _are_lengths(value: Any) -> bool:
    """Whether it is one positive, finite number or several."""
    import numpy as np  # here, so that the help of the command line is quick

    try:
        numbers = np.atleast_1d(np.asarray(value, dtype=float))
    except (TypeError, ValueError):
        return False
    return bool(np.isfinite(numbers).all() and (numbers > 0).all())


LENGTHS = Values(
    type="float or array of shape (d,)",
    noun="a positive, finite number, or one per input",
    accepts=_are_lengths,
    read=read_list(float),
    metavar="L[,L]",
)


class Hyperparameters(Frozen):
    """Hyperparameters that are given: tuning leaves them as they are, and tunes the others.

    All are in the units of the data: variances in those of y², lengthscales in those of the inputs.
    Inputs are not transformed where a lengthscale is given. Labels have no unit: variances of a
    classifier are relative to that of a 0/1 column.

    [settings]

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp import Hyperparameters, LSGPRegressor
    >>> given = Hyperparameters(lengthscale=0.2, noise_variance=1e-4)
    >>> given
    Hyperparameters(lengthscale=0.2, noise_variance=0.0001)
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> model = LSGPRegressor(objective=None, hyperparameters=given).fit(X, np.sin(6 * X[:, 0]))
    >>> print(f"{model.predict([[0.5]])[0]:.3f}")
    0.141
    >>> model.set_params(hyperparameters__lengthscale=0.5).hyperparameters
    Hyperparameters(lengthscale=0.5, noise_variance=0.0001)
    """

    settings = (
        Setting(
            "lengthscale",
            None,
            LENGTHS._replace(words=(None,)),
            "Distance over which the function changes, of all inputs or of each. On a sphere in "
            "kilometers. Inputs are then taken as they are.",
            "--lengthscale",
        ),
        Setting(
            "signal_variance",
            None,
            positive(None, metavar="VARIANCE"),
            "Prior variance of the function, in the units of y²; one for all targets.",
            "--signal-variance",
        ),
        Setting(
            "noise_variance",
            None,
            positive(None),
            "Variance of the error of an observation, in the units of y². With noise variances in "
            "`fit` too, their mean.",
        ),
        Setting(
            "scale",
            "auto",
            one_of("auto", "local", "global"),
            "Whether the signal variance follows the neighborhood or is the same everywhere. A "
            "local one is estimated from the neighbors, noise along with it, and predictions are "
            'Student-t; with a global one they are Gaussian. "auto": local, but global in exact '
            "GPs.",
            "--scale",
        ),
        Setting(
            "scale_dof",
            None,
            positive(None),
            "Degrees of freedom of the prior of a local scale, for how many neighbors it counts.",
        ),
    )
