# SPDX-License-Identifier: BSD-3-Clause
"""The models of rows on a cluster: tuned as on one machine, on rows that are fetched."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from lsgp.backends import choose_backend
from lsgp.distributed.head import Head, empty_model
from lsgp.distributed.index import ClusterIndex
from lsgp.distributed.job import Job
from lsgp.distributed.partitioning import Partitioned
from lsgp.distributed.reading import Known
from lsgp.distributed.solver import ClusterSolver, no_index
from lsgp.distributed.space import ClusterData, Source
from lsgp.distributed.statistics import labels_of
from lsgp.ensemble.build import needs_center, require_distances, with_known_noise
from lsgp.ensemble.classify import classify_given, classify_tuned, rows_of_link
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.starts import warm_starts
from lsgp.inputs.encoding import Encoder
from lsgp.inputs.labels import Labels
from lsgp.inputs.rows import Groups, TrainingRows
from lsgp.inputs.specification import DEFAULT_N_NEIGHBORS, Specification
from lsgp.inputs.transforms import InputTransform
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.method.shape import UNCHANGED_SHAPE
from lsgp.search.contract import SearchIndex
from lsgp.search.suitability import suits
from lsgp.solvers.choose import seconds_on_host
from lsgp.tuning.outcome import Outcome
from lsgp.tuning.search import tune

Array = NDArray[np.float64]


def head_of(
    job: Job,
    known: Known,
    partitioned: Partitioned,
    source: Source,
    specification: Specification,
    encoder: Encoder | None,
    queries: Array | None,
) -> Head:
    """What all partitions share: the models, tuned or as they are given."""
    estimator, mean_noise = job.estimator, partitioned.mean_noise
    if not job.is_of_labels:
        specification = with_known_noise(specification, mean_noise, source.scaler)
    labels = None if known.classes is None else labels_of(source)
    tuned: Outcome | None = None
    is_known = labels is not None and labels.n_classes == 1
    if estimator.objective is not None and not is_known:
        rows = _rows(source, known, mean_noise)
        data, budget = _data(job, source, rows, specification, labels), estimator._budget()
        previous = getattr(estimator, "ensemble_", None) if estimator.warm_start else None
        starts = warm_starts(previous, data, budget)
        tuned = tune(data, budget, starts, queries, estimator._objective(True))
        chosen = _tuned(job, tuned, source, specification)
    else:
        chosen = [_given(job, source, specification)]
    ensemble = _ensemble(job, known, source, chosen, tuned, mean_noise, encoder)
    if labels is not None:
        # Links are fitted to rows without their groups; the head keeps nothing of the rows.
        grouped = replace(ensemble, groups=_groups(source, known))
        ensemble = replace(_classify(job, known, grouped, tuned, labels), groups=None)
    estimator.ensemble_ = replace(
        ensemble, models=tuple(_without_rows(m, ensemble) for m in ensemble.models)
    )
    store = partitioned.store
    return Head(
        estimator,
        tuple(unit for _, unit in chosen),
        partitioned.regions,
        partitioned.part_of_region,
        store.boxes,
        tuple(store.sizes),
    )


def _rows(source: Source, known: Known, mean_noise: float | None) -> TrainingRows:
    X, y, noise = source.inputs(None), source.targets(), source.noise()
    return TrainingRows(X, y, None, noise, mean_noise, _groups(source, known))


def _groups(source: Source, known: Known) -> Groups | None:
    numbers = source.groups()
    return None if numbers is None else Groups(numbers, known.group_names)


def _ensemble(
    job: Job,
    known: Known,
    source: Source,
    chosen: list[tuple[FittedModel, Array]],
    tuned: Outcome | None,
    mean_noise: float | None,
    encoder: Encoder | None,
) -> Ensemble:
    table = job.table
    shape, target_names = table.target_shape, table.target_names
    if known.classes is not None:
        labels_of = [str(label) for label in known.classes.tolist()]
        is_pair = len(known.classes) == 2
        shape = () if is_pair else (len(known.classes),)
        target_names = labels_of[1:] if is_pair else labels_of
    return Ensemble(
        models=tuple(model for model, _ in chosen),
        target_scaler=source.scaler,
        scale_factor=1.0 if tuned is None else tuned.result.scale_factor,
        target_shape=shape,
        input_names=None if table.input_names is None else list(table.input_names),
        target_names=target_names,
        mean_noise_variance=mean_noise,
        tuning=None if tuned is None else tuned.result,
        encoder=encoder,
        shape=UNCHANGED_SHAPE if tuned is None else tuned.result.shape,
    )


def _data(
    job: Job,
    source: Source,
    rows: TrainingRows,
    specification: Specification,
    labels: Labels | None,
) -> ClusterData:
    estimator, resources = job.estimator, job.estimator._resources()
    seconds = seconds_on_host(source.store.n, estimator._budget().work, resources.n_threads)
    return ClusterData(
        rows=rows,
        y=source.targets(),
        specification=specification,
        objective=estimator._objective(False),
        backend=choose_backend(estimator.backend, specification.model, seconds),
        resources=resources,
        seed=int(check_random_state(estimator.random_state).randint(2**31)),
        labels=labels,
        source=source,
    )


def _given(job: Job, source: Source, specification: Specification) -> tuple[FittedModel, Array]:
    """As `build_given`."""
    model, dtype = specification.model, job.estimator.dtype
    transform = source.transform(specification.input_transforms[0])
    n_neighbors = None
    if model.bandwidth is None:
        wanted = specification.n_neighbors or DEFAULT_N_NEIGHBORS
        n_neighbors = min(wanted, source.store.n)
    require_distances(source.inputs(transform), model.lengthscale, dtype)
    unit = model.localizer_scale
    return _solved(job, source, transform, model, n_neighbors, 1.0, unit), unit


def _tuned(
    job: Job, tuned: Outcome, source: Source, specification: Specification
) -> list[tuple[FittedModel, Array]]:
    """As `build_tuned`."""
    chosen, n, dtype = [], source.store.n, job.estimator.dtype
    for contender, weight in tuned.members:
        model, size = contender.model, contender.n_neighbors
        if specification.n_neighbors is not None and size == n - 1:
            size = min(specification.n_neighbors, n)
        index, lengthscale = contender.space.index, model.localizer_scale
        transform = contender.space.transform
        is_kept = suits(index, lengthscale) and not needs_center(transform, model, dtype)
        unit = index.unit if is_kept else lengthscale
        chosen.append((_solved(job, source, transform, model, size, weight, unit), unit))
    return chosen


def _solved(
    job: Job,
    source: Source,
    transform: InputTransform,
    model: LocalModel,
    size: int | None,
    weight: float,
    unit: Array,
) -> FittedModel:
    """A model that searches on the cluster."""
    dtype = job.estimator.dtype
    if needs_center(transform, model, dtype):
        transform = transform.centered(source.summary.plain_X.center)
    problem = LocalProblem(
        source.inputs(transform, dtype), source.targets(dtype), source.noise(dtype), model
    )
    backend = choose_backend(job.estimator.backend, model).name
    index: SearchIndex = no_index(unit)
    if job.is_of_labels and job.estimator.objective is None:
        index = ClusterIndex(source.store, transform, unit)
    return FittedModel.build(transform, ClusterSolver(problem, index, size, backend), weight)


def _classify(
    job: Job, known: Known, ensemble: Ensemble, tuned: Outcome | None, labels: Labels
) -> Ensemble:
    assert known.classes is not None
    assert job.classifier is not None
    names = job.table.target_names
    name = None if names is None else names[0]
    if tuned is not None:
        return classify_tuned(ensemble, tuned, known.classes, name)
    rows = rows_of_link(labels, job.estimator.random_state)
    resources = job.estimator._resources()
    return classify_given(ensemble, labels, known.classes, name, rows, resources)


def _without_rows(fitted: FittedModel, ensemble: Ensemble) -> FittedModel:
    solver = fitted.solver
    return empty_model(
        fitted.transform,
        fitted.model,
        fitted.n_neighbors,
        fitted.weight,
        solver.backend.name,
        ensemble.n_targets,
        solver.problem.X.dtype,
    )
