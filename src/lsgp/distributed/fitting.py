# SPDX-License-Identifier: BSD-3-Clause
"""Fitting to more rows than a machine holds.

One pass over the data for ranges and a sample (`reading`); a second cuts space into regions, and
brings the rows of each together (`partitioning`). From then on rows stay where they are: statistics
are joined from those of the partitions (`rows`), tuning searches neighborhoods of a few
thousand rows (`models`), and every partition builds the models that it chose.
"""

from __future__ import annotations

from typing import Any

import dask
import numpy as np
from distributed import Client
from numpy.typing import ArrayLike

from lsgp.distributed.cluster import Cluster
from lsgp.distributed.head import Head, build_partition
from lsgp.distributed.lazy import Lazy
from lsgp.distributed.model import DistributedModel
from lsgp.distributed.models import fit_models
from lsgp.distributed.partitioning import partition
from lsgp.distributed.reading import Job, look_over, read_inputs
from lsgp.distributed.space import ClusterRows
from lsgp.distributed.table import GivenBeside, Table
from lsgp.distributed.transfer import AnyPath
from lsgp.ensemble.build import warn_if_slow
from lsgp.inputs.coordinates import Sphere
from lsgp.inputs.reading import read_queries
from lsgp.inputs.settings import specify
from lsgp.inputs.specification import Specification
from lsgp.inputs.target_scale import target_scale
from lsgp.inputs.transforms import TargetScaler
from lsgp.solvers.exact_system import LARGEST_EXACT

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
    settings = estimator._copy()
    settings._check_settings()
    table = Table.of(X, y, sample_weight, noise_variance, groups)
    cluster = Cluster(client, settings.verbose)
    job = Job(settings, table, cluster, is_of_labels=hasattr(estimator, "class_weight"))
    is_per_input = isinstance(settings.input_transform, list | tuple)
    lengthscale = settings._flat()["lengthscale"]
    if (lengthscale is None or np.ndim(lengthscale) == 0) and not is_per_input:
        # Refuses before anything is read.
        specify(settings._settings(), table.n_inputs, None, job.is_of_labels)
    return _run(job, queries, n_partitions)


def _run(job: Job, queries: object, n_partitions: int | None) -> DistributedModel:
    estimator, cluster = job.estimator, job.cluster
    _name_inputs(job)
    known = look_over(job)
    if known.n <= MOST_GATHERED:
        return _fit_here(job, queries)
    _require_no_projection(job)
    inputs = read_inputs(job, known)
    encoder, n_inputs = inputs.encoder, inputs.n_inputs
    specification = specify(estimator._settings(), n_inputs, None, job.is_of_labels)
    _require_exact_search(specification)
    warn_if_slow(estimator.backend, specification.model)
    where = None if queries is None else read_queries(estimator, queries, encoder)
    partitioned = partition(job, known, inputs, n_partitions)
    del inputs  # whose chunks the cluster may now forget
    store, summary = partitioned.store, partitioned.summary
    scaler = TargetScaler(summary.y.center, summary.y.unit)
    if not job.is_of_labels:
        ends = np.array([summary.y.low, summary.y.high])
        scaler = target_scale(scaler, ends, specification, estimator.prior_mean, estimator.dtype)
    groups = known.group_names if known.has_groups or partitioned.has_copies else None
    rows = ClusterRows(store, summary, scaler, partitioned.mean_noise, groups)
    estimator.ensemble_, units = fit_models(job, rows, specification, known.classes, encoder, where)
    regions, part_of_region = partitioned.regions, partitioned.part_of_region
    head = Head(estimator, units, regions, part_of_region, store.boxes, tuple(store.sizes))
    built = cluster.each("build", build_partition, store.parts, cluster.send(head))
    cluster.finish(built, "Building", store.sizes)
    return DistributedModel(head, built)


def _require_exact_search(specification: Specification) -> None:
    if specification.approximates:
        raise ValueError(
            "search='approximate' is for rows in the memory of one machine, and more than "
            f"{MOST_GATHERED} are searched in partitions. Leave it out."
        )
    if specification.model.is_coarse:
        raise ValueError(
            f"reach={specification.model.reach:g} is for rows in the memory of one machine, and "
            f"more than {MOST_GATHERED:,} stay on the cluster. Leave it out, or give reach=1."
        )


def _require_no_projection(job: Job) -> None:
    """Statistics of parts are of the columns as they are."""
    given = job.estimator.coordinates
    if given is not None:
        remedy = (
            "three columns, cos(lat) cos(lon), cos(lat) sin(lon) and sin(lat)"
            if isinstance(given, Sphere)
            else "columns along and across the direction"
        )
        raise ValueError(
            f"coordinates={given!r} is for rows in the memory of one machine, and more than "
            f"{MOST_GATHERED:,} stay on the cluster. Give {remedy} instead."
        )


def _name_inputs(job: Job) -> None:
    own, names = job.estimator, job.table.input_names
    own.n_features_in_ = job.table.n_inputs
    vars(own).pop("feature_names_in_", None)
    if names is not None:
        own.feature_names_in_ = np.array(names, dtype=object)


def _fit_here(job: Job, queries: object) -> DistributedModel:
    """All rows on this machine, by the estimator's own `fit`."""
    chunks = dask.compute(*job.table.chunks)
    given: dict[str, object] = {}
    for name in ("X", "y", "weight", "noise", "groups"):
        values = [getattr(chunk, name) for chunk in chunks]
        if values[0] is None or np.ndim(values[0]) == 0:
            given[name] = values[0]
        else:
            given[name] = _concatenate(values)
    beside = {"sample_weight": given["weight"], "groups": given["groups"], "queries": queries}
    if not job.is_of_labels:
        beside["noise_variance"] = given["noise"]
    job.estimator.fit(given["X"], given["y"], **beside)
    return DistributedModel(None, [], job.estimator)


def _concatenate(values: list[object]) -> Any:
    if hasattr(values[0], "iloc"):
        import pandas as pd

        return pd.concat(values)
    return np.concatenate([np.asarray(each) for each in values])
