# SPDX-License-Identifier: BSD-3-Clause
"""`save` and `load` of the estimators."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from lsgp.ensemble.fitted_model import FittedModel
from lsgp.inputs.transforms import TargetScaler
from lsgp.storage import records
from lsgp.storage.model_file import (
    Contents,
    ModelFileError,
    Path,
    damaged,
    read_model_file,
    write_model_file,
)
from lsgp.storage.values import decode, encode
from lsgp.tuning.result import TuningResult


class StorageMixin:
    """Saving an estimator that has been fitted, and loading it again."""

    fitted_: tuple[FittedModel, ...]
    target_scaler_: TargetScaler
    scale_factor_: float
    mean_noise_variance_: float | None
    tuning_: TuningResult | None
    n_features_in_: int
    target_names_: list[str] | None
    _y_shape: tuple[int, ...]

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
        store = records.ArrayStore()
        settings: dict[str, Any] = self.get_params(deep=False)  # type: ignore[attr-defined]
        names = getattr(self, "feature_names_in_", None)
        state = {
            "class": type(self).__name__,
            "parameters": {name: encode(value, name) for name, value in settings.items()},
            "n_features": int(self.n_features_in_),
            "feature_names": None if names is None else [str(name) for name in names],
            "target_names": self.target_names_,
            "target_shape": [int(size) for size in self._y_shape],
            "target_scaler": {
                name: store.add(f"target.{name}", getattr(self.target_scaler_, name))
                for name in ("mean", "std")
            },
            "scale_factor": encode(self.scale_factor_, "scale_factor_"),
            "mean_noise_variance": encode(self.mean_noise_variance_, "mean_noise_variance_"),
            "models": [
                records.fitted_model_record(fitted, f"models.{k}.", store)
                for k, fitted in enumerate(self.fitted_)
            ],
            "tuning": None if self.tuning_ is None else records.tuning_record(self.tuning_, store),
        }
        texts = {"library_version": _library_version(), "estimator": json.dumps(state)}
        write_model_file(path, Contents(texts, store.arrays))

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
        contents = read_model_file(path, check_arrays)
        try:
            state = json.loads(contents.texts["estimator"])
            if state["class"] != cls.__name__:
                raise ModelFileError(
                    f"{path} holds a model of {state['class']}, not of {cls.__name__}. Load it "
                    f"with {state['class']}.load."
                )
            estimator = cls._from_parameters(path, contents, state["parameters"])
            estimator._restore(state, contents.arrays)
        except ModelFileError:
            raise
        except Exception as error:
            # Whatever does not fit: a record of the wrong type, a missing name.
            fact = str(error) if isinstance(error, records.InvalidRecord) else repr(error)
            raise damaged(path, f"its contents contradict each other ({fact})") from error
        return estimator

    @classmethod
    def _from_parameters(cls, path: Path, contents: Contents, parameters: dict[str, Any]) -> Self:
        estimator = cls()
        known = estimator.get_params(deep=False)  # type: ignore[attr-defined]
        unknown = sorted(set(parameters) - set(known))
        if unknown:
            raise ModelFileError(
                f"{path} has the parameter {unknown[0]!r}, which this lsgp ({_library_version()}) "
                f"does not know. Update lsgp to {contents.texts.get('library_version')}, which "
                "saved it."
            )
        for name, value in parameters.items():
            setattr(estimator, name, decode(value))
        return estimator

    def _restore(self, state: dict[str, Any], arrays: dict[str, Any]) -> None:
        n_inputs, names = state["n_features"], state["feature_names"]
        records.require(type(n_inputs) is int and n_inputs >= 1, f"{n_inputs!r} inputs")
        self.n_features_in_ = n_inputs
        if names is not None:
            _require_names(names, n_inputs, "inputs")
            self.feature_names_in_ = np.array(names, dtype=object)
        self.fitted_ = tuple(
            records.read_fitted_model(record, arrays, n_inputs) for record in state["models"]
        )
        records.require(self.fitted_, "no model")
        shapes = {(*fitted.problem.X.shape, *fitted.problem.y.shape) for fitted in self.fitted_}
        records.require(len(shapes) == 1, f"models of different shapes {sorted(shapes)}")
        n_targets = self.fitted_[0].problem.y.shape[1]
        shape = tuple(state["target_shape"])
        records.require(shape in ((), (n_targets,)), f"{n_targets} targets of shape {shape}")
        records.require(shape != () or n_targets == 1, f"{n_targets} targets of shape {shape}")
        self._y_shape = shape
        self.target_names_ = state["target_names"]
        if self.target_names_ is not None:
            _require_names(self.target_names_, n_targets, "targets")
        mean, std = (arrays[state["target_scaler"][name]] for name in ("mean", "std"))
        for array in (mean, std):
            records.require(array.shape == (n_targets,), f"target scale of shape {array.shape}")
            records.require(array.dtype == np.float64, f"target scale of {array.dtype}")
        self.target_scaler_ = TargetScaler(mean, std)
        self.scale_factor_ = decode(state["scale_factor"])
        records.require(isinstance(self.scale_factor_, float), "scale_factor is no number")
        self.mean_noise_variance_ = decode(state["mean_noise_variance"])
        is_mean = isinstance(self.mean_noise_variance_, float) and self.mean_noise_variance_ > 0
        records.require(
            self.mean_noise_variance_ is None or is_mean, "mean_noise_variance is not positive"
        )
        tuning = state["tuning"]
        self.tuning_ = None if tuning is None else records.read_tuning(tuning, arrays, n_inputs)


def _require_names(names: Any, n: int, what: str) -> None:
    records.require(isinstance(names, list) and len(names) == n, f"{names!r} for {n} {what}")
    records.require(all(isinstance(name, str) for name in names), f"{names!r} for {n} {what}")


def _library_version() -> str:
    try:
        return version("lsgp")
    except PackageNotFoundError:  # a source tree that was never installed
        return "unknown"
