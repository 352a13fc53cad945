# SPDX-License-Identifier: BSD-3-Clause
"""``lsgp fit`` and ``lsgp predict`` with ``--scheduler``: folders of Parquet, on a Dask cluster."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
import dask.dataframe as dd
import numpy as np
from distributed import Client

import lsgp.distributed
from lsgp.cli.console import Voice
from lsgp.cli.errors import CommandError, did_you_mean, list_names, require_columns
from lsgp.cli.fit import interrupts_end_tuning, make_model
from lsgp.compute.text import count
from lsgp.distributed.cluster import Cluster
from lsgp.distributed.folder import MANIFEST
from lsgp.distributed.lazy import Lazy
from lsgp.distributed.model import DistributedModel
from lsgp.distributed.transfer import Estimator, ModelPath
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.view import columns_of, input_names, target_names
from lsgp.method.distribution import PredictiveDistribution

if TYPE_CHECKING:
    from pandas import DataFrame

SUFFIXES = ("mean", "std", "low", "high")


@contextmanager
def connected(options: argparse.Namespace) -> Iterator[Client]:
    """A client of the scheduler; of one of its own on this machine for "local"."""
    if options.scheduler == "local":
        with Client(dashboard_address=":0") as client:
            yield client
        return
    try:
        client = Client(options.scheduler, timeout=10)
    except (OSError, TimeoutError, ValueError) as error:
        raise CommandError(
            f"There is no scheduler at {options.scheduler}: {error}. Start one with `dask "
            "scheduler`, or use --scheduler local."
        ) from None
    with client:
        yield client


def read_folder(path: str) -> Any:
    if not os.path.exists(path) and not any(sign in path for sign in "*:"):
        beside = Path(path).parent
        names = [entry.name for entry in beside.iterdir()] if beside.is_dir() else []
        raise CommandError(f"There is no folder {path}.{did_you_mean(Path(path).name, names)}")
    frame = dd.read_parquet(path)
    # Partitions that stay as they are, whichever columns are wanted.
    return dd.from_delayed(frame.to_delayed(), meta=frame._meta, verify_meta=False)


# -- fit -------------------------------------------------------------------------------------------


def fit(options: argparse.Namespace, voice: Voice) -> None:
    started = time.perf_counter()
    if options.queries is not None:
        raise CommandError("--queries and --scheduler do not go together. Leave one of them out.")
    targets = [name for part in options.target for name in part]
    with connected(options) as client:
        frame = read_folder(options.data)
        columns = dict.fromkeys(map(str, frame.columns))
        others = {
            "sample_weight": options.weight,
            "noise_variance": options.noise_variance,
            "groups": options.group,
        }
        beside = {role: name for role, name in others.items() if name is not None}
        require_columns([*targets, *beside.values()], columns, options.data)
        is_of_labels = options.task == "classification" or (
            options.task == "auto" and frame.dtypes[targets[0]].kind not in "iuf"
        )
        taken = {*targets, *beside.values()}
        left_out = {*taken, *(options.ignore or ())}
        inputs = options.features or [name for name in columns if name not in left_out]
        require_columns([*inputs, *(options.ignore or ())], columns, options.data)
        if not inputs:
            raise CommandError(f"{options.data} has no column beside {list_names(left_out)}.")
        model = make_model(options, voice, len(inputs), is_of_labels)
        frame = frame[[*inputs, *taken]]
        if not options.strict:
            numbers = [] if is_of_labels else targets
            frame = frame.map_partitions(complete_rows, numbers, list(taken), meta=frame._meta)
        with interrupts_end_tuning():
            fitted = lsgp.distributed.fit(
                model, frame, targets[0] if len(targets) == 1 else targets, client, **beside
            )
        fitted.save(options.output)
        ensemble = fitted.estimator.ensemble_
    seconds = time.perf_counter() - started
    rate = f"{fitted.n_rows / seconds:,.0f} rows a second"
    loss = None if ensemble.tuning is None else ensemble.tuning.loss
    summary = {
        "command": "fit",
        "output": options.output,
        "n_rows": fitted.n_rows,
        "n_partitions": fitted.n_partitions,
        "n_models": len(ensemble.models),
        "loss": loss,
        "seconds": seconds,
    }
    lines = [
        ("Model", f"{options.output}, in {seconds:.1f} s ({rate})"),
        ("Target", list_names(targets)),
        ("Inputs", list_names(inputs)),
        ("Rows", f"{fitted.n_rows:,} in {count(fitted.n_partitions, 'partition')}"),
        ("Models", str(len(ensemble.models))),
    ]
    voice.summarize(summary, lines)


def complete_rows(frame: DataFrame, numbers: list[str], others: list[str]) -> DataFrame:
    """The rows in which these numbers are there and finite, and others are not missing."""
    is_complete = np.isfinite(frame[numbers].to_numpy(dtype=float, na_value=np.nan)).all(axis=1)
    return frame[is_complete & frame[others].notna().all(axis=1).to_numpy()]


# -- predict ---------------------------------------------------------------------------------------


def predict(options: argparse.Namespace, voice: Voice) -> None:
    started = time.perf_counter()
    if not os.path.exists(options.model):
        raise CommandError(f"There is no model {options.model}.")
    target = Path(options.output)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise CommandError(f"{target} is there already. Name a new folder for the predictions.")
    with connected(options) as client:
        cluster = Cluster(client, int(voice.shows_progress))
        frame = read_folder(options.data)
        model, estimator = open_model(options.model)
        ensemble = estimator.ensemble_
        names = ensemble.input_names or input_names(ensemble)
        if ensemble.input_names is None:
            raise CommandError(
                f"{options.model} does not know the names of its inputs. Fit it from a table."
            )
        columns = dict.fromkeys(map(str, frame.columns))
        require_columns(names, columns, options.data)
        kept = names
        if options.keep_all or options.keep is not None:
            kept = list(columns) if options.keep_all else options.keep
            require_columns(kept, columns, options.data)
        if not options.strict and ensemble.encoder is None:
            frame = frame.map_partitions(complete_rows, names, names, meta=frame._meta)
        frame = frame[list(dict.fromkeys([*names, *kept]))]
        pieces = frame.to_delayed()
        frame = dd.from_delayed(pieces, meta=frame._meta, verify_meta=False)
        parts = parts_of(model, frame[names], ensemble.classification is not None, options)
        folder = target.with_name(f".{target.name}.{cluster.job}.tmp")
        folder.mkdir(parents=True)
        kept = [] if options.keep_none else kept
        written = [
            dask.delayed(write_partition)(
                piece,
                own,
                kept,
                output_columns(ensemble),
                options.level,
                str(folder / f"part-{k:05d}.parquet"),
                dask_key_name=cluster.key("write"),
            )
            for k, (piece, own) in enumerate(zip(pieces, zip(*parts, strict=True), strict=True))
        ]
        sizes = cluster.gather(client.compute(written), "Predicting")
        if target.exists():
            target.rmdir()
        folder.rename(target)
    seconds, n_rows = time.perf_counter() - started, sum(sizes)
    summary = {
        "command": "predict",
        "output": options.output,
        "n_rows": n_rows,
        "columns": [*kept, *output_columns(ensemble)],
        "seconds": seconds,
    }
    rows = f"{count(n_rows, 'row')} in {seconds:.1f} s ({n_rows / seconds:,.0f} a second)"
    voice.summarize(summary, [("Predictions", options.output), ("Rows", rows)])


def open_model(path: str) -> tuple[str | DistributedModel, Estimator]:
    """A model of a folder or of a file, and its estimator."""
    if os.path.isdir(path):
        if not os.path.exists(os.path.join(path, MANIFEST)):
            raise CommandError(f"{path} is a folder without a model: it has no {MANIFEST}.")
        model = lsgp.distributed.DistributedModel.load(path)
        return model, model.estimator
    return path, ModelPath.of(path).open()


def parts_of(
    model: str | DistributedModel,
    frame: dd.DataFrame,
    is_of_labels: bool,
    options: argparse.Namespace,
) -> list[list[Any]]:
    """Partitions of each part of the predictions."""
    if isinstance(model, str):
        if is_of_labels:
            found: tuple[Lazy, ...] = (lsgp.distributed.predict_proba(model, frame),)
        else:
            found = lsgp.distributed.predict_distribution(model, frame, kind=options.kind)
    elif is_of_labels:
        found = (model.predict_proba(frame),)
    else:
        found = model.predict_distribution(frame, kind=options.kind)
    return [list(part.to_delayed()) for part in found]


def output_columns(ensemble: Ensemble) -> list[str]:
    """Names of the columns that predictions are written to."""
    classes = ensemble.classification
    if classes is not None:
        label = classes.label_name or "y"
        return [label, *(f"{label}_{name}" for name in classes.class_names)]
    return [f"{name}_{suffix}" for name in target_names(ensemble) for suffix in SUFFIXES]


def write_partition(
    rows: DataFrame,
    parts: Sequence[DataFrame],
    kept: list[str],
    names: list[str],
    level: float,
    path: str,
) -> int:
    """Predictions of a partition beside the columns that are kept, in a file of their own."""
    values = [np.asarray(part) for part in parts]
    if len(values) == 1:
        proba = values[0]
        classes = np.array(list(parts[0].columns), dtype=object)
        columns: list[Any] = [classes[np.argmax(proba, axis=1)], *proba.T]
    else:
        predicted = PredictiveDistribution(*values)
        each = (predicted.mean, predicted.std, *predicted.interval(level))
        by_target = zip(*(columns_of(part).T for part in each), strict=True)
        columns = [column for own in by_target for column in own]
    frame = rows[kept].assign(**dict(zip(names, columns, strict=True)))
    temporary = f"{path}.{os.getpid()}.tmp"
    frame.to_parquet(temporary)
    os.replace(temporary, path)
    return len(frame)
