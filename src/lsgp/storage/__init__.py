# SPDX-License-Identifier: BSD-3-Clause
"""Saved models: one safetensors file, whose arrays are memory-mapped when it is loaded.

`model_file` is the container (layout, checksums). `values` writes settings in it and `records`
everything that was fitted, by the types of its fields; `schemas` is the table of what each kind of
record may hold, in the words of `rules`. `trees` checks what finds rows, `estimator` puts all
together. Nothing is pickled, and loading runs no code of the file. Imports every room from
`method` to `ensemble`.
"""

from typing import Any

from lsgp.storage.model_file import ModelFileError

__all__ = ["TRUSTED_TYPES", "ModelFileError"]

#: What an estimator consists of in memory, beside its settings and the records of files.
_IN_MEMORY = (
    "lsgp.ensemble.fitted_model.FittedModel",
    "lsgp.estimators.classifier.LSGPClassifier",
    "lsgp.estimators.regressor.LSGPRegressor",
    "lsgp.method.kernels.SumKernel",
    "lsgp.search.index.GrowingIndex",
    "lsgp.solvers.choose.LeveledSolver",
    "lsgp.solvers.coarse.CoarseSolver",
    "lsgp.solvers.exact.ExactSolver",
    "lsgp.solvers.laplace.Mode",
    "lsgp.solvers.local.LocalSolver",
)


def __getattr__(name: str) -> Any:
    """``TRUSTED_TYPES``: what to trust when skops, or mlflow with it, loads an estimator.

    They are classes of this library that hold arrays, numbers and words, and run no code when they
    are made. Kernel objects of scikit-learn and classes of your own are not among them.
    """
    if name != "TRUSTED_TYPES":
        raise AttributeError(f"module 'lsgp.storage' has no attribute {name!r}")
    # Here, because importing all of them takes a moment, which `import lsgp.storage` need not.
    from lsgp.storage.schemas import SCHEMAS
    from lsgp.storage.values import CLASSES

    kinds = (*SCHEMAS, *CLASSES["settings"].values())
    return tuple(sorted({*_IN_MEMORY, *(f"{kind.__module__}.{kind.__name__}" for kind in kinds)}))
