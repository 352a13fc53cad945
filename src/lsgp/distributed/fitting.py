# SPDX-License-Identifier: BSD-3-Clause
"""Fitting to more rows than a machine holds.

One pass over the data for ranges and a sample; a second cuts space into regions, and brings the
rows of each together. From then on rows stay where they are: statistics are exact sums of the
partitions' own, tuning searches neighborhoods of a few thousand rows, and every partition builds
the models that it chose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple, Protocol, cast

import dask
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from lsgp.backends import choose_backend
from lsgp.backends.contract import Resources
from lsgp.distributed import parts as tasks
from lsgp.distributed.carriage import Estimator
from lsgp.distributed.cluster import Cluster
from lsgp.distributed.head import Head, build_part, empty_model
from lsgp.distributed.index import ClusterIndex
from lsgp.distributed.model import DistributedModel
from lsgp.distributed.parts import Extents, Means, Moments, Rows
from lsgp.distributed.regions import Boxes, Regions
from lsgp.distributed.solver import ClusterSolver
from lsgp.distributed.space import ClusterProblem, Source
from lsgp.distributed.store import RowStore
from lsgp.distributed.table import Encoding, Survey, Table, read, survey
from lsgp.ensemble.build import require_distances, with_known_noise
from lsgp.ensemble.classify import classify_given, classify_tuned
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.inputs.copies import is_continuous
from lsgp.inputs.labels import classes_of
from lsgp.inputs.rows import Groups, TrainingRows, require_alike
from lsgp.inputs.settings import DEFAULT_N_NEIGHBORS, Specification, specify
from lsgp.inputs.transforms import TargetScaler, subsample
from lsgp.inputs.transforms.column_statistics import Range, statistics_of
from lsgp.inputs.transforms.exact_sums import rounded
from lsgp.inputs.transforms.fit import LARGEST_SAMPLE
from lsgp.method.contract import LocalProblem
from lsgp.search.suitability import suits
from lsgp.solvers.exact_system import LARGEST_EXACT
from lsgp.tuning.classification import Labels, prior_of
from lsgp.tuning.objective import Objective
from lsgp.tuning.problem import WarmStart
from lsgp.tuning.search import Tuned, tune

Array = NDArray[np.float64]

#: Of so few rows there may be exact GPs, which need all of them: they are gathered.
MOST_GATHERED = LARGEST_EXACT
#: Rows of a partition, unless told otherwise: about 100 MB of two inputs with the index of a model.
ROWS_PER_PARTITION = 2_000_000
#: Distinct targets that one task counts.
TARGETS_PER_TASK = 5_000_000
#: What 32-bit row numbers can count.
MOST_ROWS = np.iinfo(np.int32).max


class Fittable(Estimator, Protocol):
    """What is asked of an estimator that is fitted here: what `fit` of it asks itself for."""

    objective: str | None
    sphere: Any
    anisotropy: Any
    backend: str
    dtype: str
    random_state: Any
    noise_variance: float | None
    n_tuning_points: int
    n_models: int
    max_tuning_time: float | None

    def _copy(self) -> Any: ...
    def _check_settings(self) -> None: ...
    def _settings(self) -> dict[str, Any]: ...
    def _objective(self, has_queries: bool) -> Objective: ...
    def _resources(self) -> Resources: ...
    def _warn_if_slow(self, specification: Specification) -> None: ...
    def _warn_of_copies(self, n_copies: int, n_rows: int) -> None: ...
    def _check_targets(self, scaler: TargetScaler, y: Array) -> None: ...
    def _known_scaler(self, n_targets: int) -> TargetScaler: ...
    def _warm_starts(self, specification: Specification, X: Array) -> tuple[WarmStart, ...]: ...


def fit(
    estimator: Any,
    X: Any,
    y: Any,
    client: Any = None,
    *,
    sample_weight: Any = None,
    noise_variance: Any = None,
    groups: Any = None,
    queries: Any = None,
    n_partitions: int | None = None,
) -> DistributedModel:
    """Fit an estimator to rows that lie on a cluster.

    The result predicts what ``estimator.fit(X, y, ...)`` would predict on one machine with room for
    all rows, to the last bit: the same targets are drawn, neighborhoods are the exact ones, and
    statistics do not depend on where rows lie.

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
        As in `fit` of the estimator.
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
    settings: Fittable = estimator._copy()
    settings._check_settings()
    is_of_labels = hasattr(estimator, "predict_proba")
    table = Table.of(X, y, sample_weight, noise_variance, groups)
    specification = specify(settings._settings(), table.n_inputs)
    cluster = Cluster(client, settings.verbose)
    job = _Fit(settings, table, specification, cluster, is_of_labels)
    return job.run(queries, n_partitions)


class _Known(NamedTuple):
    """What the first pass over the data tells of all rows."""

    surveys: list[Survey]
    encoding: Encoding
    n: int
    first_numbers: list[int]
    extents: Extents
    classes: NDArray[Any] | None
    group_names: tuple[Any, ...]


class _Fit:
    """One fit: what is given, and the steps."""

    def __init__(
        self,
        estimator: Fittable,
        table: Table,
        specification: Specification,
        cluster: Cluster,
        is_of_labels: bool,
    ) -> None:
        self.estimator, self.table, self.cluster = estimator, table, cluster
        self.specification, self.is_of_labels = specification, is_of_labels

    def run(self, queries: Any, n_partitions: int | None) -> DistributedModel:
        self._name_inputs()
        known = self._survey()
        if known.n <= MOST_GATHERED:
            return self._fit_here(queries)
        self._require_no_projection()
        self.estimator._warn_if_slow(self.specification)
        where: Array | None = None
        if queries is not None:
            own: Any = self.estimator
            where = own._check_numbers(queries)
        regions = self._regions(known, n_partitions)
        store, mean_noise, n_copies = self._partition(known, regions)
        if self.has_weights(known):
            known = self._weigh(store, known)
        source = self._source(store, known)
        head, tuned = self._models(source, known, regions, mean_noise, where)
        if tuned is not None and n_copies:
            ensemble = head.estimator.ensemble_
            assert ensemble.tuning is not None
            result = replace(ensemble.tuning, n_copies=n_copies)
            head.estimator.ensemble_ = replace(ensemble, tuning=result)
        cluster = self.cluster
        sent = cluster.send(head)
        built = [cluster.submit("build", build_part, part, sent) for part in store.parts]
        cluster.finish(built, "Building", sizes=lambda k: store.sizes[k], total=store.n)
        return DistributedModel(head, built)

    def _require_no_projection(self) -> None:
        """Statistics of parts are of the columns as they are."""
        for setting, remedy in (
            ("sphere", "three columns, cos(lat) cos(lon), cos(lat) sin(lon) and sin(lat)"),
            ("anisotropy", "columns along and across the direction"),
        ):
            value = getattr(self.estimator, setting)
            if value is not None:
                raise ValueError(
                    f"{setting}={value!r} is for rows in the memory of one machine, and more than "
                    f"{MOST_GATHERED:,} stay on the cluster. Give {remedy} instead."
                )

    def _name_inputs(self) -> None:
        own: Any = self.estimator
        own.n_features_in_ = self.table.n_inputs
        vars(own).pop("feature_names_in_", None)
        if self.table.input_names is not None:
            own.feature_names_in_ = np.array(self.table.input_names, dtype=object)

    # -- the first pass --------------------------------------------------------------------

    def _survey(self) -> _Known:
        cluster, table = self.cluster, self.table
        class_weight = getattr(self.estimator, "class_weight", None)
        is_balanced = isinstance(class_weight, str)
        encoding = Encoding(self.is_of_labels, None if is_balanced else class_weight)
        with dask.annotate(lsgp="survey", retries=5):
            looked = cluster.client.compute(
                [
                    dask.delayed(survey)(chunk, encoding, k, dask_key_name=cluster.key("survey"))
                    for k, chunk in enumerate(table.chunks)
                ]
            )
        surveys: list[Survey] = cluster.gather(looked, "Reading")
        n = sum(each.n for each in surveys)
        filled = [each for each in surveys if each.n]
        if not filled:
            raise ValueError(
                f"There are no rows to learn from among {sum(s.n_given for s in surveys)}."
            )
        if n > MOST_ROWS:
            raise ValueError(f"X has {n} rows, more than the {MOST_ROWS} that can be numbered.")
        classes = None
        if self.is_of_labels:
            labels = [each.labels for each in surveys if each.labels is not None]
            classes = classes_of(np.concatenate(labels), None)
            if is_balanced:
                encoding = encoding._replace(class_weight=_balanced(surveys, classes))
            encoding = encoding._replace(classes=classes)
        names: tuple[Any, ...] = ()
        if surveys[0].groups is not None:
            distinct = np.unique(
                np.concatenate([s.groups for s in surveys if s.groups is not None])
            )
            encoding = encoding._replace(groups=distinct)
            names = tuple(
                label if isinstance(label, str | int | float) else str(label)
                for label in distinct.tolist()
            )
        ranges = [(each.X, each.y) for each in filled if each.X is not None and each.y is not None]
        own = reduce(Range.join, [x for x, _ in ranges])
        targets = own
        if not self.is_of_labels:
            targets = reduce(Range.join, [y for _, y in ranges])
        first = np.cumsum([0, *(each.n for each in surveys)])[:-1].tolist()
        return _Known(surveys, encoding, n, first, Extents(own, targets), classes, names)

    def _fit_here(self, queries: Any) -> DistributedModel:
        """All rows on this machine, by the estimator's own `fit`."""
        chunks = dask.compute(*self.table.chunks)
        given: dict[str, Any] = {}
        for name in ("X", "y", "weight", "noise", "groups"):
            values = [getattr(chunk, name) for chunk in chunks]
            if values[0] is None or np.ndim(values[0]) == 0:
                given[name] = values[0]
            else:
                given[name] = _concatenate(values)
        own: Any = self.estimator
        beside = {"sample_weight": given["weight"], "groups": given["groups"], "queries": queries}
        if not self.is_of_labels:
            beside["noise_variance"] = given["noise"]
        own.fit(given["X"], given["y"], **beside)
        return DistributedModel(None, [], own)

    def _regions(self, known: _Known, n_partitions: int | None) -> Regions:
        if n_partitions is None:
            n_partitions = max(-(-known.n // ROWS_PER_PARTITION), self.cluster.n_threads)
        # From each chunk as large a share of the sample as it has of the rows.
        smallest = min(len(each.sample) / each.n for each in known.surveys if each.n)
        sample = [
            each.sample[: max(1, round(smallest * each.n))] for each in known.surveys if each.n
        ]
        return Regions.of_sample(np.concatenate(sample), int(n_partitions))

    # -- partitions ------------------------------------------------------------------------

    def _partition(self, known: _Known, regions: Regions) -> tuple[RowStore, float | None, int]:
        """The rows by region, as models have them; the mean noise, and the number of copies."""
        cluster = self.cluster
        pieces: list[list[Any]] = [[] for _ in range(regions.n_regions)]
        with dask.annotate(lsgp="partition", retries=5):
            for chunk, first, looked in zip(
                self.table.chunks, known.first_numbers, known.surveys, strict=True
            ):
                if not looked.n:
                    continue
                rows = dask.delayed(read)(chunk, known.encoding, dask_key_name=cluster.key("read"))
                split = dask.delayed(tasks.split)(
                    rows, first, regions, dask_key_name=cluster.key("split")
                )
                for p, own in enumerate(pieces):
                    own.append(
                        dask.delayed(tasks.piece)(split, p, dask_key_name=cluster.key("piece"))
                    )
            joined = cluster.client.compute(
                [
                    dask.delayed(tasks.join)(own, dask_key_name=cluster.key("partition"))
                    for own in pieces
                ]
            )
        per_part = known.n // max(1, len(joined))
        cluster.finish(joined, "Partitioning", sizes=lambda _: per_part, total=known.n)
        bounds = cluster.gather([cluster.submit("bounds", tasks.bounds, part) for part in joined])
        store = _store(cluster, joined, bounds)
        self.part_of_region = _part_of_region(bounds)
        mean_noise = self._mean_noise(store, known)
        settled = [
            cluster.submit("settle", tasks.settle, part, mean_noise, None) for part in store.parts
        ]
        store = RowStore(cluster, settled, store.sizes, store.boxes)
        is_checked = self.estimator.objective is not None and not self.is_of_labels
        has_more = self.has_weights(known) or known.encoding.groups is not None
        if not is_checked or has_more:
            return store, mean_noise, 0
        return (*self._without_copies(store, mean_noise),)

    def has_weights(self, known: _Known) -> bool:
        """Whether weights were given, be they all alike."""
        return self.table.has_weight or known.encoding.class_weight is not None

    def _mean_noise(self, store: RowStore, known: _Known) -> float | None:
        filled = [each for each in known.surveys if each.n]
        low, high = min(each.noise[0] for each in filled), max(each.noise[1] for each in filled)
        if not self._has_noise:
            return None
        cluster = self.cluster
        sums = cluster.gather(
            [cluster.submit("noise", tasks.noise_sums, part, high) for part in store.parts]
        )
        mean = high * (float(rounded(sum(sums))[0]) / store.n)
        remedy = "Check the units of the rows that stand out."
        require_alike("noise_variance", np.array([low, high]) / mean, remedy)
        return mean

    @property
    def _has_noise(self) -> bool:
        return self.table.has_noise

    def _without_copies(
        self, store: RowStore, mean_noise: float | None
    ) -> tuple[RowStore, float | None, int]:
        cluster = self.cluster
        found = cluster.gather(
            [cluster.submit("copies", tasks.dropped_copies, part) for part in store.parts]
        )
        dropped = np.sort(np.concatenate([each.dropped for each in found]))
        if not len(dropped):
            return store, mean_noise, 0
        n_kept = store.n - len(dropped)
        n_buckets = -(-n_kept // TARGETS_PER_TASK)
        sent = cluster.send(dropped)
        n_distinct = 0
        for bucket in range(n_buckets):
            distinct = [
                cluster.submit("targets", tasks.distinct_targets, part, sent, bucket, n_buckets)
                for part in store.parts
            ]
            counted = cluster.submit("count", tasks.count_distinct, distinct)
            n_distinct += cluster.gather([counted])[0]
        if not is_continuous(n_distinct, n_kept):
            return store, mean_noise, 0
        self.estimator._warn_of_copies(len(dropped), store.n)
        kept = [cluster.submit("settle", tasks.settle, part, None, sent) for part in store.parts]
        sizes = [each.n_kept for each in found]
        return RowStore(cluster, kept, sizes, store.boxes), mean_noise, len(dropped)

    # -- statistics ------------------------------------------------------------------------

    def _weigh(self, store: RowStore, known: _Known) -> _Known:
        """With the largest weight, of classes too."""
        cluster = self.cluster
        ends = cluster.gather(
            [cluster.submit("weights", tasks.weight_range, part) for part in store.parts]
        )
        low, high = min(low for low, _ in ends), max(high for _, high in ends)
        remedy = "Give rows that do not count the weight 0."
        require_alike("sample_weight", np.array([low, high]), remedy)
        extents = Extents._make(own._replace(largest_weight=high) for own in known.extents)
        return known._replace(extents=extents)

    def _source(self, store: RowStore, known: _Known) -> Source:
        """Statistics of all rows, from exact sums of those of each partition."""
        cluster, extents = self.cluster, known.extents
        if self.is_of_labels:
            extents = extents._replace(y=self._range_of_classes(known))

        def total(what: str, function: Any, *arguments: Any) -> Moments:
            futures = [cluster.submit(what, function, part, *arguments) for part in store.parts]
            return reduce(Moments.join, cluster.gather(futures, "Adding up"))

        first = total("mean", tasks.first_sums, extents)
        weight = rounded(first.weight)
        means = Means(rounded(first.X) / weight, rounded(first.y) / weight)
        second = total("spread", tasks.second_sums, extents, means)
        of_inputs = statistics_of(extents.X, means.X, rounded(second.X) / weight)
        of_targets = statistics_of(extents.y, means.y, rounded(second.y) / weight)
        scaler = TargetScaler(
            of_targets.center, np.where(np.isinf(of_targets.scale), 1.0, of_targets.scale)
        )
        n_targets = len(of_targets.center)
        if not self.is_of_labels:
            if not self.estimator._settings()["normalize_y"]:
                scaler = self.estimator._known_scaler(n_targets)
            self.estimator._check_targets(scaler, np.array([extents.y.low, extents.y.high]))
        chosen = subsample(store.n, LARGEST_SAMPLE)
        rows = store.fetch(np.arange(store.n) if chosen is None else chosen)
        has_groups = known.encoding.groups is not None
        return Source(store, of_inputs, rows.X, scaler, has_groups, n_targets)

    def _range_of_classes(self, known: _Known) -> Range:
        assert known.classes is not None
        n_classes = len(known.classes)
        width = 1 if n_classes == 2 else n_classes
        low, high = np.zeros(width), np.ones(width)
        if n_classes == 1:
            low = np.ones(1)
        return Range(low, high, known.extents.X.largest_weight)

    # -- models ----------------------------------------------------------------------------

    def _models(
        self,
        source: Source,
        known: _Known,
        regions: Regions,
        mean_noise: float | None,
        queries: Array | None,
    ) -> tuple[Head, Tuned | None]:
        estimator, specification = self.estimator, self.specification
        if mean_noise is not None and estimator.noise_variance is None:
            specification = with_known_noise(specification, mean_noise, source.scaler)
        labels = self._labels(source, known)
        group_numbers = source.groups()
        groups = None if group_numbers is None else Groups(group_numbers, known.group_names)
        rows = TrainingRows(
            source.inputs(None), source.targets(), None, source.noise(), mean_noise, groups
        )
        tuned: Tuned | None = None
        is_known = labels is not None and labels.n_classes == 1
        if estimator.objective is not None and not is_known:
            tuned = tune(self._problem(source, rows, specification, queries, labels))
            chosen = self._tuned(tuned, source, specification)
        else:
            chosen = [self._given(source, specification)]
        names = None if self.table.input_names is None else list(self.table.input_names)
        shape, target_names = self.table.target_shape, self.table.target_names
        if known.classes is not None:
            labels_of = [str(label) for label in known.classes.tolist()]
            is_pair = len(known.classes) == 2
            shape = () if is_pair else (len(known.classes),)
            target_names = labels_of[1:] if is_pair else labels_of
        ensemble = Ensemble(
            models=tuple(model for model, _ in chosen),
            target_scaler=source.scaler,
            scale_factor=1.0 if tuned is None else tuned.result.scale_factor,
            target_shape=shape,
            input_names=names,
            target_names=target_names,
            mean_noise_variance=mean_noise,
            tuning=None if tuned is None else tuned.result,
        )
        if labels is not None:
            assert known.classes is not None
            ensemble = self._classify(ensemble, tuned, labels, known.classes)
        own: Any = estimator
        own.ensemble_ = replace(
            ensemble, models=tuple(_without_rows(m, ensemble) for m in ensemble.models)
        )
        units = tuple(unit for _, unit in chosen)
        store = source.store
        head = Head(own, units, regions, self.part_of_region, store.boxes, tuple(store.sizes))
        return head, tuned

    def _problem(
        self,
        source: Source,
        rows: TrainingRows,
        specification: Specification,
        queries: Array | None,
        labels: Labels | None,
    ) -> ClusterProblem:
        estimator = self.estimator
        return ClusterProblem.build(
            rows=rows,
            y=source.targets(),
            specification=specification,
            objective=estimator._objective(queries is not None),
            backend=estimator.backend,
            resources=estimator._resources(),
            seed=int(check_random_state(estimator.random_state).randint(2**31)),
            queries=queries,
            n_tuning_points=int(estimator.n_tuning_points),
            n_models=int(estimator.n_models),
            max_seconds=estimator.max_tuning_time,
            warm_starts=estimator._warm_starts(specification, rows.X),
            labels=labels,
            source=source,
        )

    def _given(self, source: Source, specification: Specification) -> tuple[FittedModel, Array]:
        """As `build_given`."""
        model, dtype = specification.model, self.estimator.dtype
        transform = source.transform(specification.input_transforms[0])
        n_neighbors = None
        if model.bandwidth is None:
            wanted = specification.n_neighbors or DEFAULT_N_NEIGHBORS
            n_neighbors = min(wanted, source.store.n)
        require_distances(source.inputs(transform), model.lengthscale, dtype)
        unit = model.localizer_scale
        return self._solved(source, transform, model, n_neighbors, 1.0, unit), unit

    def _tuned(
        self, tuned: Tuned, source: Source, specification: Specification
    ) -> list[tuple[FittedModel, Array]]:
        """As `build_tuned`."""
        chosen, n = [], source.store.n
        for contender, weight in tuned.members:
            model, size = contender.model, contender.n_neighbors
            if specification.n_neighbors is not None and size == n - 1:
                size = min(specification.n_neighbors, n)
            index, lengthscale = contender.space.index, model.localizer_scale
            unit = index.unit if suits(index, lengthscale) else lengthscale
            transform = contender.space.transform
            chosen.append((self._solved(source, transform, model, size, weight, unit), unit))
        return chosen

    def _solved(
        self, source: Source, transform: Any, model: Any, size: Any, weight: float, unit: Array
    ) -> FittedModel:
        """A model that searches on the cluster."""
        dtype = self.estimator.dtype
        if np.dtype(dtype) == np.float32 and None in transform.kinds:
            transform = transform.centered(source.statistics.center)
        problem = LocalProblem(
            source.inputs(transform, dtype), source.targets(dtype), source.noise(dtype), model
        )
        backend = choose_backend(self.estimator.backend, model).name
        index: Any = None
        if self.is_of_labels and self.estimator.objective is None:
            index = ClusterIndex(source.store, transform, unit)
        nothing = np.empty((0, 0), np.int32)
        solver = ClusterSolver(problem, index, nothing, size, backend)
        return FittedModel.build(transform, solver, weight)

    # -- labels ----------------------------------------------------------------------------

    def _labels(self, source: Source, known: _Known) -> Labels | None:
        if known.classes is None:
            return None
        store, n_classes = source.store, len(known.classes)
        cluster = self.cluster
        mean_weight = None
        if self.has_weights(known):
            largest = known.extents.X.largest_weight
            total = sum(
                cluster.gather(
                    [cluster.submit("weights", tasks.weight_sums, p, largest) for p in store.parts]
                )
            )
            mean_weight = largest * (float(rounded(total)[0]) / store.n)
            top = largest / mean_weight
            sums = cluster.gather(
                [
                    cluster.submit("classes", tasks.class_sums, p, mean_weight, top, n_classes)
                    for p in store.parts
                ]
            )
            prior = prior_of(top * rounded(sum(sums)))
        else:
            counts = cluster.gather(
                [cluster.submit("classes", tasks.class_counts, p, n_classes) for p in store.parts]
            )
            prior = prior_of(sum(counts).astype(float))

        def codes(rows: Rows) -> NDArray[np.int64]:
            return tasks.codes_of(rows.y, n_classes)

        def weights(rows: Rows) -> Array:
            if mean_weight is None or rows.weight is None:
                return np.ones(rows.n)
            return rows.weight / mean_weight

        of_rows: Any = source.columns((store.n,), codes, np.int64)
        of_weights = source.columns((store.n,), weights, float)
        return Labels(cast("NDArray[np.int64]", of_rows), of_weights, prior, source.scaler)

    def _classify(
        self, ensemble: Ensemble, tuned: Tuned | None, labels: Labels, classes: NDArray[Any]
    ) -> Ensemble:
        names = self.table.target_names
        name = None if names is None else names[0]
        if tuned is not None:
            return classify_tuned(ensemble, tuned, classes, name)
        own: Any = self.estimator
        rows = own._link_rows(labels)
        return classify_given(ensemble, labels, classes, name, rows, self.estimator._resources())


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


def _store(cluster: Cluster, joined: Sequence[Any], bounds: Sequence[Any]) -> RowStore:
    """The partitions that have rows."""
    filled = [p for p, (n, _, _) in enumerate(bounds) if n]
    boxes = Boxes(*(np.array([bounds[p][side] for p in filled]) for side in (1, 2)))
    return RowStore(cluster, [joined[p] for p in filled], [bounds[p][0] for p in filled], boxes)


def _part_of_region(bounds: Sequence[Any]) -> NDArray[np.int64]:
    """The partition of each region; that before it where it is empty."""
    is_filled = np.array([n > 0 for n, _, _ in bounds])
    return np.maximum(np.cumsum(is_filled) - 1, 0)


def _balanced(surveys: Sequence[Survey], classes: NDArray[Any]) -> dict[Any, float]:
    """As scikit-learn's "balanced": weights by which all classes count alike."""
    counts = np.zeros(len(classes))
    for each in surveys:
        if each.labels is not None and each.counts is not None:
            counts[np.searchsorted(classes, each.labels)] += each.counts
    weights = counts.sum() / (len(classes) * counts)
    return dict(zip(classes.tolist(), weights.tolist(), strict=True))


def _concatenate(values: Sequence[Any]) -> Any:
    if hasattr(values[0], "iloc"):
        import pandas as pd

        return pd.concat(values)
    return np.concatenate([np.asarray(each) for each in values])
