# SPDX-License-Identifier: BSD-3-Clause
"""How much tuning tries: a word, and what only experts change about it."""

from __future__ import annotations

from lsgp.inputs.setting import REGRESSOR, Frozen, Setting
from lsgp.inputs.values import flag, one_of, whole

#: Their budgets are in `lsgp.tuning.budget`.
EFFORTS = ("fast", "balanced", "best")


class Effort(Frozen):
    """How much tuning tries, and what predictions may cost.

    Its name alone is enough for the common case: ``effort="fast"``. The other fields are for those
    who study models: one model alone, or distributions as the models have them.

    [settings]

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp import Effort, LSGPRegressor
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> effort = Effort("fast", n_models=1)
    >>> model = LSGPRegressor(effort=effort, random_state=0).fit(X, np.sin(6 * X[:, 0]))
    >>> len(model.fitted_)
    1
    """

    n_positional = 1
    settings = (
        Setting("name", "balanced", one_of(*EFFORTS), "How much tuning tries."),
        Setting(
            "n_models",
            None,
            whole(1, None),
            "Models that are combined, at most. 1 keeps the best local model alone. None: by the "
            "name.",
            "--n-models",
        ),
        Setting(
            "n_points",
            None,
            whole(1, None),
            "Rows whose held-out predictions an optimization scores, at most. What else tuning "
            "tries (exact GPs, rounds, trees) scales with it. None: by the name.",
            "--n-points",
        ),
        Setting(
            "calibrate",
            True,
            flag(),
            "Whether tuning ends with a calibration, by which intervals of every level cover in "
            "leave-one-out. False: distributions as the models have them.",
            "--no-calibrate",
            "No calibration at the end of tuning.",
            estimators=(REGRESSOR,),
        ),
        Setting(
            "boosting",
            True,
            flag(),
            "Whether boosted trees may be combined with the models, where they predict held-out "
            "rows better. Never where a kernel, a neighborhood or hyperparameters are given, with "
            "fewer than three inputs, or for queries beyond the rows.",
            "--no-boosting",
            "No boosted trees among the models.",
            estimators=(REGRESSOR,),
        ),
    )
