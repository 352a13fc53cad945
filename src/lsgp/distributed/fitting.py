# SPDX-License-Identifier: BSD-3-Clause
"""Fitting to more rows than a machine holds.

One pass over the data for ranges and a sample (`reading`); a second cuts space into regions, and
brings the rows of each together (`partitioning`). From then on rows stay where they are: statistics
are joined from those of the partitions, tuning searches neighborhoods of a few thousand rows
(`space`), and every partition builds the models that it chose (`partitions`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import dask
import numpy as np
from distributed import Client
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from lsgp.backends import choose_backend
from lsgp.compute.files import AnyPath
from lsgp.distributed.cluster import Cluster
from lsgp.distributed.lazy import Lazy
from lsgp.distributed.model import DistributedModel
from lsgp.distributed.partitioning import partition
from lsgp.distributed.partitions import (
    ClusterSolver,
    Head,
    build_partition,
    without_rows,
)
from lsgp.distributed.reading import Job, look_over, read_inputs
from lsgp.distributed.search import ClusterIndex, RowStore
from lsgp.distributed.space import ClusterData, ClusterRows
from lsgp.distributed.table import GivenBeside, Raw, Table
from lsgp.ensemble.build import (
    needs_center,
    require_distances,
    warm_starts,
    warn_if_slow,
    with_known_noise,
)
from lsgp.ensemble.classify import classify_given, classify_tuned, rows_of_link
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.inputs.encoding import Encoder
from lsgp.inputs.labels import Labels
from lsgp.inputs.reading import read_queries
from lsgp.inputs.setting_objects import Sphere
from lsgp.inputs.settings import specify
from lsgp.inputs.specification import DEFAULT_N_NEIGHBORS, Specification, target_scale
from lsgp.inputs.transforms import InputTransform, TargetScaler
from lsgp.method.combination import UNCHANGED_SHAPE
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.search.index import suits
from lsgp.solvers.choose import seconds_on_host
from lsgp.solvers.exact_system import LARGEST_EXACT
from lsgp.tuning.outcome import Outcome
from lsgp.tuning.search import tune

Array = NDArray[np.float64]

#: Of so few rows there may be exact GPs, which need all of them: they are gathered.
MOST_GATHERED = LARGEST_EXACT


def fit(
    estimator: Any,
    X: Lazy | AnyPath,
    y: GivenBeside,
    client: Client | None = None,
    *,
    sample_weight: GivenBeside | None = None,
    noise_variance: GivenBeside | None = None,
    groups: GivenBeside | None = None,
    queries: ArrayLike | None = None,
    n_partitions: int | None = None,
) -> DistributedModel:
    """Fit an estimator to rows that lie on a cluster.

    The result predicts what ``estimator.fit(X, y, ...)`` would predict on one machine with room for
    all rows: the same targets are drawn, and neighborhoods are the exact ones. Statistics of all
    rows are rounded in another order, so that tuned hyperparameters may differ a little.

    Parameters
    ----------
    estimator : LSGPRegressor or LSGPClassifier
        With its settings; it is not changed.
    X : Dask array of shape (n, d), Dask data frame, or path of a folder of Parquet
    y : Dask array or series of as many rows, or the name (or names) of columns of X
    client : distributed.Client, default=None
        None: the one that there is.
    sample_weight, noise_variance, groups : as y, default=None
        As in `fit` of the estimator.
    queries : array-like of shape (q, d), default=None
        As in `fit` of the estimator, but no regions are held out: where queries lie in gaps, one
        model is kept, of lengthscales no shorter than the gaps.
    n_partitions : int, default=None
        About how many partitions; None: one for two million rows, and at least one for each thread
        of the cluster.

    Returns
    -------
    DistributedModel

    Examples
    --------
    >>> import dask.array as da
    >>> import lsgp.distributed
    >>> from distributed import Client
    >>> from lsgp import LSGPRegressor
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     X = da.random.default_rng(0).uniform(size=(20_000, 2), chunks=(5_000, 2))
    ...     model = LSGPRegressor(objective=None, n_neighbors=20)
    ...     fitted = lsgp.distributed.fit(model, X, X.sum(axis=1), n_partitions=3)
    ...     mean = fitted.predict([[0.5, 0.25]])
    >>> print(f"{mean[0]:.2f}")
    0.75
    """
    own = estimator._copy()
    own._check_settings()
    table = Table.of(X, y, sample_weight, noise_variance, groups)
    cluster = Cluster(client, own.verbose)
    job = Job(own, table, cluster, is_of_labels=hasattr(estimator, "class_weight"))
    is_per_input = isinstance(own.input_transform, list | tuple)
    lengthscale = own._flat()["lengthscale"]
    if (lengthscale is None or np.ndim(lengthscale) == 0) and not is_per_input:
        # Refuses before anything is read.
        specify(own._settings(), table.n_inputs, None, job.is_of_labels)
    own.n_features_in_ = table.n_inputs
    vars(own).pop("feature_names_in_", None)
    if table.input_names is not None:
        own.feature_names_in_ = np.array(table.input_names, dtype=object)
    known = look_over(job)
    if known.n <= MOST_GATHERED:
        return _fit_here(job, queries)
    if own.coordinates is not None:
        remedy = "columns along and across the direction"
        if isinstance(own.coordinates, Sphere):
            remedy = "three columns, cos(lat) cos(lon), cos(lat) sin(lon) and sin(lat)"
        # Statistics of parts are of the columns as they are.
        _refuse(f"coordinates={own.coordinates!r}", f"Give {remedy} instead.")
    inputs = read_inputs(job, known)
    encoder = inputs.encoder
    specification = specify(own._settings(), inputs.n_inputs, None, job.is_of_labels)
    if specification.approximates:
        _refuse("search='approximate'", "Leave it out.")
    if specification.model.is_coarse:
        reach = specification.model.reach
        _refuse(f"reach={reach:g}", "Leave it out, or give reach=1.")
    warn_if_slow(own.backend, specification.model)
    where = None if queries is None else read_queries(own, queries, encoder)
    parts = partition(job, known, inputs, n_partitions)
    del inputs  # whose chunks the cluster may now forget
    summary = parts.summary
    scaler = TargetScaler(summary.y.center, summary.y.unit)
    if not job.is_of_labels:
        ends = np.array([summary.y.low, summary.y.high])
        scaler = target_scale(scaler, ends, specification, own.prior_mean, own.dtype)
    group_names = known.group_names if known.has_groups or parts.has_copies else None
    store = RowStore(cluster, parts.parts, parts.sizes, parts.boxes)
    rows = ClusterRows(store, summary, scaler, parts.mean_noise, group_names)
    own.ensemble_, units = fit_models(job, rows, specification, known.classes, encoder, where)
    sizes = tuple(parts.sizes)
    head = Head(own, parts.regions, parts.part_of_region, parts.boxes, sizes)
    built = cluster.each("build", build_partition, parts.parts, cluster.send(head), units)
    cluster.finish(built, "Building", sizes)
    return DistributedModel(head, built)


def _refuse(setting: str, remedy: str) -> None:
    raise ValueError(
        f"{setting} is for rows in the memory of one machine, and more than {MOST_GATHERED:,} stay "
        f"on the cluster. {remedy}"
    )


def _fit_here(job: Job, queries: object) -> DistributedModel:
    """Gather all rows on this machine, and call the estimator's own `fit`."""
    chunks: tuple[Raw, ...] = dask.compute(*job.table.chunks)
    given = []
    for own in zip(*chunks, strict=True):
        if own[0] is None or np.ndim(own[0]) == 0:
            given.append(own[0])
        elif hasattr(own[0], "iloc"):
            import pandas as pd

            given.append(pd.concat(own))
        else:
            given.append(np.concatenate([np.asarray(each) for each in own]))
    whole = Raw(*given)
    beside = {"sample_weight": whole.weight, "groups": whole.groups, "queries": queries}
    if not job.is_of_labels:
        beside["noise_variance"] = whole.noise
    job.estimator.fit(whole.X, whole.y, **beside)
    return DistributedModel(None, [], job.estimator)


# -- models ----------------------------------------------------------------------------------------


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
    labels = None if classes is None else rows.labels(len(classes))
    if labels is None:
        specification = with_known_noise(specification, rows.mean_noise, rows.scaler)
    dtype, n = estimator.dtype, rows.store.n

    def build(
        transform: InputTransform, model: LocalModel, size: int | None, weight: float, unit: Array
    ) -> FittedModel:
        """A model that searches on the cluster."""
        if needs_center(transform, model, dtype):
            transform = transform.centered(rows.summary.plain_X.center)
        columns = rows.inputs(transform, dtype), rows.targets(dtype), rows.noise(dtype)
        backend = choose_backend(estimator.backend, model).name
        index = ClusterIndex(rows.store, transform, unit)
        solver = ClusterSolver(LocalProblem(*columns, model), index, size, backend)
        return FittedModel(transform, solver, weight)

    models, units, tuned, size = [], [], None, specification.n_neighbors
    if estimator.objective is not None and (labels is None or labels.n_classes > 1):
        tuned = _tune(job, rows, specification, labels, queries)
        for contender, weight in tuned.members:  # as `build_tuned`
            model, own = contender.model, contender.n_neighbors
            if size is not None and own == n - 1:
                own = min(size, n)
            index, transform = contender.space.index, contender.space.transform
            unit = model.localizer_scale
            if suits(index, unit) and not needs_center(transform, model, dtype):
                unit = index.unit
            models.append(build(transform, model, own, weight, unit))
            units.append(unit)
    else:  # as `build_given`
        model, transform = specification.model, rows.transform(specification.input_transforms[0])
        within = model.bandwidth is not None
        require_distances(rows.inputs(transform), model.lengthscale, dtype)
        units.append(model.localizer_scale)
        own = None if within else min(size or DEFAULT_N_NEIGHBORS, n)
        models.append(build(transform, model, own, 1.0, units[0]))
    shape, target_names = job.table.target_shape, job.table.target_names
    label_name = None if target_names is None else target_names[0]
    if classes is not None:
        names = [str(label) for label in classes.tolist()]
        is_pair = len(names) == 2
        shape, target_names = ((), names[1:]) if is_pair else ((len(names),), names)
    ensemble = Ensemble(
        models=tuple(models),
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
        # Links are fitted to rows without their groups; the model that is kept has no rows.
        grouped = replace(ensemble, groups=rows.groups)
        sample = rows_of_link(labels, estimator.random_state)
        resources = estimator._resources()
        fitted = classify_given(grouped, labels, classes, label_name, sample, resources)
        ensemble = replace(fitted, groups=None)
    bare = tuple(without_rows(own, own.n_neighbors) for own in ensemble.models)
    return replace(ensemble, models=bare), tuple(units)


def _tune(
    job: Job,
    rows: ClusterRows,
    specification: Specification,
    labels: Labels | None,
    queries: Array | None,
) -> Outcome:
    estimator, resources, budget = (
        job.estimator,
        job.estimator._resources(),
        job.estimator._budget(),
    )
    seconds = seconds_on_host(rows.store.n, budget.work, resources.n_threads)
    data = ClusterData(
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
    previous = getattr(estimator, "ensemble_", None) if estimator.warm_start else None
    starts = warm_starts(previous, data, budget)
    return tune(data, budget, starts, queries, estimator._objective(True))
