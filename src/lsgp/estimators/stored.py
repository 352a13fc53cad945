# SPDX-License-Identifier: BSD-3-Clause
"""A fitted estimator to a file, and back."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from lsgp.ensemble.ensemble import Ensemble
from lsgp.estimators.settings import EstimatorSettings
from lsgp.storage.estimator import load_estimator, save_estimator
from lsgp.storage.model_file import Path


class StoredEstimator(EstimatorSettings):
    """Settings and a fitted ensemble, which are all that a file holds."""

    ensemble_: Ensemble
    n_features_in_: int

    def save(self, path: Path) -> None:
        """Write the fitted estimator to one file, from which `load` makes it again.

        Parameters
        ----------
        path : str or path
            A file that is there is replaced when the new one is complete, and not touched
            when saving fails.

        Notes
        -----
        The file is in the safetensors format: arrays, and settings as JSON. It holds no code.
        Kernels of one's own, beside those of scikit-learn, need pickle or joblib instead.

        Examples
        --------
        >>> import os, tempfile
        >>> import numpy as np
        >>> from lsgp import LSGPRegressor
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> model = LSGPRegressor(objective=None).fit(X, np.sin(6 * X[:, 0]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "model.lsgp")
        ...     model.save(path)
        ...     loaded = LSGPRegressor.load(path)
        >>> bool(loaded.predict([[0.5]]) == model.predict([[0.5]]))
        True
        """
        check_is_fitted(self)
        save_estimator(path, type(self).__name__, self.get_params(deep=False), self.ensemble_)

    @classmethod
    def load(cls, path: Path, *, check_arrays: bool = True) -> Self:
        """The estimator that `save` wrote; its predictions are the same to the last bit.

        Parameters
        ----------
        path : str or path
        check_arrays : bool
            Whether the arrays are compared with their checksum, for which all of the file is
            read once, at some gigabytes per second. Otherwise it is read where it is needed.

        Returns
        -------
        estimator
            Its training rows and their index stay in the file and are read from there: do not
            change the file in place while the estimator is in use. Saving over it is safe.

        Raises
        ------
        ModelFileError
            The file is damaged, not a model, of a newer format, or of another estimator.
        """
        estimator = cls()
        parameters, ensemble = load_estimator(
            path, cls.__name__, set(estimator.get_params(deep=False)), check_arrays
        )
        for name, value in parameters.items():
            setattr(estimator, name, value)
        estimator.n_features_in_ = ensemble.n_columns
        if ensemble.input_names is not None:
            estimator.feature_names_in_ = np.array(ensemble.input_names, dtype=object)
        estimator.ensemble_ = ensemble
        return estimator
