# SPDX-License-Identifier: BSD-3-Clause
"""The models of rows on a cluster: tuned as on one machine, on rows that are fetched."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from lsgp.backends import choose_backend
from lsgp.distributed.head import without_rows
from lsgp.distributed.index import ClusterIndex
from lsgp.distributed.reading import Job
from lsgp.distributed.solver import ClusterSolver, unsearched_index
from lsgp.distributed.space import ClusterData, ClusterRows
from lsgp.ensemble.build import needs_center, require_distances, warm_starts, with_known_noise
from lsgp.ensemble.classify import classify_given, classify_tuned, rows_of_link
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.inputs.encoding import Encoder
from lsgp.inputs.labels import Labels
from lsgp.inputs.specification import DEFAULT_N_NEIGHBORS, Specification
from lsgp.inputs.transforms import InputTransform
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.method.shape import UNCHANGED_SHAPE
from lsgp.search.contract import SearchIndex
from lsgp.search.index import suits
from lsgp.solvers.choose import seconds_on_host
from lsgp.tuning.outcome import Outcome
from lsgp.tuning.search import tune

Array = NDArray[np.float64]

#: A model, and the metric that the indexes of partitions are built for.
Chosen = tuple[FittedModel, Array]


def fit_models(
    job: Job,
    rows: ClusterRows,
    specification: Specification,
    classes: NDArray[np.generic] | None,
    encoder: Encoder | None,
    queries: Array | None,
) -> tuple[Ensemble, tuple[Array, ...]]:
    """Models without rows, tuned or as they are given, and the metrics of their indexes."""
    estimator = job.estimator
    labels = None if classes is None else rows.labels()
    if labels is None:
        specification = with_known_noise(specification, rows.mean_noise, rows.scaler)
    tuned: Outcome | None = None
    if estimator.objective is not None and (labels is None or labels.n_classes > 1):
        data, budget = _data(job, rows, specification, labels), estimator._budget()
        previous = getattr(estimator, "ensemble_", None) if estimator.warm_start else None
        starts = warm_starts(previous, data, budget)
        tuned = tune(data, budget, starts, queries, estimator._objective(True))
        chosen = _tuned(job, tuned, rows, specification)
    else:
        chosen = [_given(job, rows, specification)]
    shape, target_names = job.table.target_shape, job.table.target_names
    label_name = None if target_names is None else target_names[0]
    if classes is not None:
        names = [str(label) for label in classes.tolist()]
        is_pair = len(names) == 2
        shape, target_names = ((), names[1:]) if is_pair else ((len(names),), names)
    ensemble = Ensemble(
        models=tuple(model for model, _ in chosen),
        target_scaler=rows.scaler,
        scale_factor=1.0 if tuned is None else tuned.result.scale_factor,
        target_shape=shape,
        input_names=job.table.input_names,
        target_names=target_names,
        mean_noise_variance=rows.mean_noise,
        tuning=None if tuned is None else tuned.result,
        encoder=encoder,
        shape=UNCHANGED_SHAPE if tuned is None else tuned.result.shape,
    )
    if classes is not None and tuned is not None:
        ensemble = classify_tuned(ensemble, tuned, classes, label_name)
    elif classes is not None:
        assert labels is not None
        # Links are fitted to rows without their groups; what is kept has no rows.
        grouped = replace(ensemble, groups=rows.groups)
        sample = rows_of_link(labels, estimator.random_state)
        resources = estimator._resources()
        fitted = classify_given(grouped, labels, classes, label_name, sample, resources)
        ensemble = replace(fitted, groups=None)
    models = tuple(without_rows(own, own.n_neighbors) for own in ensemble.models)
    return replace(ensemble, models=models), tuple(unit for _, unit in chosen)


def _data(
    job: Job, rows: ClusterRows, specification: Specification, labels: Labels | None
) -> ClusterData:
    estimator, resources = job.estimator, job.estimator._resources()
    seconds = seconds_on_host(rows.n, estimator._budget().work, resources.n_threads)
    return ClusterData(
        rows=rows.training_rows(),
        y=rows.targets(),
        specification=specification,
        objective=estimator._objective(False),
        backend=choose_backend(estimator.backend, specification.model, seconds),
        resources=resources,
        seed=int(check_random_state(estimator.random_state).randint(2**31)),
        labels=labels,
        source=rows,
    )


def _given(job: Job, rows: ClusterRows, specification: Specification) -> Chosen:
    """As `build_given`."""
    model, transform = specification.model, rows.transform(specification.input_transforms[0])
    n_neighbors = None
    if model.bandwidth is None:
        n_neighbors = min(specification.n_neighbors or DEFAULT_N_NEIGHBORS, rows.n)
    require_distances(rows.inputs(transform), model.lengthscale, job.estimator.dtype)
    unit = model.localizer_scale
    return _solved(job, rows, transform, model, n_neighbors, 1.0, unit), unit


def _tuned(
    job: Job, tuned: Outcome, rows: ClusterRows, specification: Specification
) -> list[Chosen]:
    """As `build_tuned`."""
    chosen = []
    for contender, weight in tuned.members:
        model, size = contender.model, contender.n_neighbors
        if specification.n_neighbors is not None and size == rows.n - 1:
            size = min(specification.n_neighbors, rows.n)
        index, transform = contender.space.index, contender.space.transform
        is_kept = suits(index, model.localizer_scale)
        is_kept = is_kept and not needs_center(transform, model, job.estimator.dtype)
        unit = index.unit if is_kept else model.localizer_scale
        chosen.append((_solved(job, rows, transform, model, size, weight, unit), unit))
    return chosen


def _solved(
    job: Job,
    rows: ClusterRows,
    transform: InputTransform,
    model: LocalModel,
    size: int | None,
    weight: float,
    unit: Array,
) -> FittedModel:
    """A model that searches on the cluster."""
    dtype = job.estimator.dtype
    if needs_center(transform, model, dtype):
        transform = transform.centered(rows.summary.plain_X.center)
    problem = LocalProblem(
        rows.inputs(transform, dtype), rows.targets(dtype), rows.noise(dtype), model
    )
    backend = choose_backend(job.estimator.backend, model).name
    index: SearchIndex = unsearched_index(unit)
    if job.is_of_labels and job.estimator.objective is None:
        index = ClusterIndex(rows.store, transform, unit)
    return FittedModel(transform, ClusterSolver(problem, index, size, backend), weight)
