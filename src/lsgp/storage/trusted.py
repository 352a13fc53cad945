# SPDX-License-Identifier: BSD-3-Clause
"""The types that a stored estimator consists of, for stores that load only what is trusted."""

from __future__ import annotations

#: What to trust when skops, or mlflow with it, loads an estimator: classes of this library that
#: hold arrays, numbers and words, and run no code when they are made. Kernel objects of
#: scikit-learn and classes of your own are not among them.
TRUSTED_TYPES = (
    "lsgp.ensemble.ensemble.Ensemble",
    "lsgp.ensemble.extent.Extent",
    "lsgp.ensemble.fitted_model.FittedModel",
    "lsgp.ensemble.georeference.Georeference",
    "lsgp.estimators.regressor.LSGPRegressor",
    "lsgp.inputs.encoding.adjustment.Adjustment",
    "lsgp.inputs.encoding.categories.OneHot",
    "lsgp.inputs.encoding.categories.Order",
    "lsgp.inputs.encoding.categories.Statistics",
    "lsgp.inputs.encoding.dates.Date",
    "lsgp.inputs.encoding.dates.TimeOfDay",
    "lsgp.inputs.encoding.encoder.Encoder",
    "lsgp.inputs.encoding.encodings.LeftOut",
    "lsgp.inputs.encoding.encodings.Number",
    "lsgp.inputs.encoding.missing.Imputation",
    "lsgp.inputs.transforms.inputs.InputTransform",
    "lsgp.inputs.transforms.rotation.Rotation",
    "lsgp.inputs.transforms.sphere.Sphere",
    "lsgp.inputs.transforms.targets.TargetScaler",
    "lsgp.method.contract.LocalModel",
    "lsgp.method.contract.LocalProblem",
    "lsgp.method.distribution.PredictiveDistribution",
    "lsgp.search.approximate.ApproximateIndex",
    "lsgp.search.approximate.Codes",
    "lsgp.method.shape.Shape",
    "lsgp.search.growing.GrowingIndex",
    "lsgp.search.index.NeighborIndex",
    "lsgp.solvers.coarse.CoarseSolver",
    "lsgp.solvers.exact.ExactSolver",
    "lsgp.solvers.local.LocalSolver",
    "lsgp.solvers.nodes.LazyNodes",
    "lsgp.tuning.result.Candidate",
    "lsgp.tuning.result.TuningResult",
)
