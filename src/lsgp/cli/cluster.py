# SPDX-License-Identifier: BSD-3-Clause
"""``lsgp fit`` and ``lsgp predict`` with ``--scheduler``: folders of Parquet, on a Dask cluster."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
from distributed import Client
from numpy.typing import NDArray

import lsgp.distributed
from lsgp import PredictiveDistribution
from lsgp.cli.classification import label_columns
from lsgp.cli.console import Voice
from lsgp.cli.describe import describe_model, describe_models
from lsgp.cli.errors import CommandError, did_you_mean, list_names
from lsgp.cli.estimators import asked_of_spread, make_estimator
from lsgp.cli.fit import interrupts_end_tuning, say_fitted, say_left_out
from lsgp.cli.models import input_columns, kept_columns
from lsgp.cli.regression import number_columns
from lsgp.cli.roles import find_roles
from lsgp.cli.rows import Inputs, Mask
from lsgp.cli.table import Column
from lsgp.cli.tasks import task_of
from lsgp.compute.files import replace_folder
from lsgp.compute.text import count
from lsgp.distributed.cluster import Cluster
from lsgp.distributed.folder import MANIFEST
from lsgp.distributed.model import DistributedModel
from lsgp.distributed.transfer import Estimator, ModelPath
from lsgp.inputs.encoding.text import MISSING

if TYPE_CHECKING:
    from pandas import DataFrame


class Folder(NamedTuple):
    """A folder of Parquet files, as far as its columns go, and its rows on the cluster."""

    name: str
    columns: dict[str, Column]
    frame: Any  # dask.dataframe.DataFrame

    def keep_as_text(self, names: Sequence[str]) -> None:
        """Columns of Parquet files have their types."""


def refuse_options(options: argparse.Namespace, names: Sequence[str]) -> None:
    """Raise CommandError about options that a cluster has no use for, if they are given."""
    for name in names:
        if getattr(options, name) is not None:
            option = "--" + name.replace("_", "-")
            raise CommandError(
                f"{option} and --scheduler do not go together: data and output are folders of "
                "Parquet. Leave one of them out."
            )


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


def open_folder(path: str) -> Folder:
    """The columns and partitions of a folder, which may be a pattern or an address."""
    if not os.path.exists(path) and not any(sign in path for sign in "*:"):
        beside = Path(path).parent
        names = [entry.name for entry in beside.iterdir()] if beside.is_dir() else []
        raise CommandError(f"There is no folder {path}.{did_you_mean(Path(path).name, names)}")
    frame = dd.read_parquet(path)
    kinds = {"i": "number", "u": "number", "f": "number", "b": "flag", "O": "text"}
    columns = {
        str(name): Column(kinds.get(dtype.kind, str(dtype)), pl.Unknown)
        for name, dtype in frame.dtypes.items()
    }
    # Partitions that stay as they are, whichever columns are wanted.
    frame = dd.from_delayed(frame.to_delayed(), meta=frame._meta, verify_meta=False)
    return Folder(path, columns, frame)


# -- fit -------------------------------------------------------------------------------------------


def fit(options: argparse.Namespace, voice: Voice) -> None:
    """Fit a model to the rows of a folder, and save it as a file or a folder."""
    started = time.perf_counter()
    refuse_options(options, ("queries", "format", "separator"))
    with connected(options) as client:
        folder = open_folder(options.data)
        roles = find_roles(options, folder)
        inputs, targets = roles.inputs, roles.targets.names
        model = make_estimator(options, voice, len(inputs.names), roles.targets.are_labels)
        say_left_out(roles, folder, voice)
        needed = [*targets, *roles.beside.values()]
        frame = folder.frame[list(dict.fromkeys([*inputs.names, *needed]))]
        labels = targets if roles.targets.are_labels else []
        frame = frame.map_partitions(
            usable_part, Needs(inputs, needed, labels), options.strict, meta=frame._meta
        )
        with interrupts_end_tuning():
            fitted = lsgp.distributed.fit(
                model, frame, targets[0] if len(targets) == 1 else targets, client, **roles.beside
            )
        fitted.save(options.output)
    unused = [*roles.left_out, *say_fitted(fitted.estimator, voice)]
    seconds = time.perf_counter() - started
    rate = f"{fitted.n_rows / seconds:,.0f} rows a second"
    summary = {
        "command": "fit",
        "output": options.output,
        "n_rows": fitted.n_rows,
        "n_partitions": fitted.n_partitions,
        "columns_not_used": unused,
        **describe_model(fitted.estimator),
        "n_train": fitted.n_rows,  # the estimator itself has none
        "seconds": seconds,
    }
    lines = [
        ("Model", f"{options.output}, in {seconds:.1f} s ({rate})"),
        ("Target", list_names(targets)),
        ("Inputs", list_names(name for name in inputs.names if name not in unused)),
        ("Rows", f"{fitted.n_rows:,} in {count(fitted.n_partitions, 'partition')}"),
        *describe_models(fitted.estimator),
    ]
    voice.summarize(summary, lines)


# -- predict ---------------------------------------------------------------------------------------


def predict(options: argparse.Namespace, voice: Voice) -> None:
    """Predict the rows of a folder into another folder, a file for each partition."""
    started = time.perf_counter()
    refuse_options(options, ("format", "separator", "output_format"))
    if not os.path.exists(options.model):
        raise CommandError(f"There is no model {options.model}.")
    target = Path(options.output)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise CommandError(f"{target} is there already. Name a new folder for the predictions.")
    with connected(options) as client:
        cluster = Cluster(client, int(voice.shows_progress))
        folder = open_folder(options.data)
        model, estimator = open_model(options.model)
        task = task_of(estimator)
        spread, outputs = asked_of_spread(estimator, options), list(task.outputs())
        own = estimator.ensemble_.classification
        classes = None if own is None else own.classes
        inputs = input_columns(estimator, folder)
        kept = kept_columns(options, folder, inputs.names, outputs)
        rows = folder.frame[list(dict.fromkeys([*inputs.names, *kept]))]
        usable = rows[inputs.names].map_partitions(
            usable_part, Needs(inputs), options.strict, meta=rows._meta[inputs.names]
        )
        parts = zip(*parts_of(model, usable, spread), strict=True)
        with replace_folder(target) as place:
            written = [
                dask.delayed(write_partition)(
                    piece,
                    part,
                    Output(inputs, kept, outputs, spread, classes),
                    str(place / f"part-{k:05d}.parquet"),
                    dask_key_name=cluster.key("write"),
                )
                for k, (piece, part) in enumerate(zip(rows.to_delayed(), parts, strict=True))
            ]
            sizes = cluster.gather(client.compute(written), "Predicting")
    seconds = time.perf_counter() - started
    n_rows, n_predicted = (sum(each) for each in zip(*sizes, strict=True))
    if n_predicted < n_rows:
        n_missing = count(n_rows - n_predicted, "row")
        voice.note(f"{n_missing} of {folder.name} not predicted: a missing input")
    summary = {
        "command": "predict",
        "output": options.output,
        "n_rows": n_rows,
        "n_predicted": n_predicted,
        "n_missing_inputs": n_rows - n_predicted,
        "columns": [*kept, *outputs],
        **spread,
        "seconds": seconds,
    }
    rate = f"{count(n_rows, 'row')} in {seconds:.1f} s ({n_rows / seconds:,.0f} a second)"
    voice.summarize(summary, [("Predictions", options.output), ("Rows", rate)])


def open_model(path: str) -> tuple[str | DistributedModel, Estimator]:
    """A model of a folder or of a file, and its estimator."""
    if os.path.isdir(path):
        if not os.path.exists(os.path.join(path, MANIFEST)):
            raise CommandError(f"{path} is a folder without a model: it has no {MANIFEST}.")
        model = lsgp.distributed.DistributedModel.load(path)
        return model, model.estimator
    return path, ModelPath.of(path).open()


def parts_of(
    model: str | DistributedModel, frame: dd.DataFrame, spread: dict[str, Any]
) -> list[list[Any]]:
    """Partitions of each part of the predictions: of probabilities, or of a distribution."""
    method = "predict_distribution" if spread else "predict_proba"
    options = {"kind": spread["kind"]} if spread else {}
    if isinstance(model, str):
        found = getattr(lsgp.distributed, method)(model, frame, **options)
    else:
        found = getattr(model, method)(frame, **options)
    if not spread:
        found = [found]
    return [list(part.to_delayed()) for part in found]


class Output(NamedTuple):
    """What is written of each partition."""

    inputs: Inputs
    kept: list[str]  # columns that are copied
    names: list[str]  # of the predictions
    spread: dict[str, Any]
    classes: NDArray[Any] | None


def write_partition(
    rows: DataFrame, parts: Sequence[DataFrame], output: Output, path: str
) -> tuple[int, int]:
    """Write predictions beside the columns that are kept; numbers of rows, and of predicted ones.

    The predictions are those of the usable rows; the others have none.
    """
    values = [np.asarray(part) for part in parts]
    if output.classes is not None:
        columns = label_columns(values[0], output.classes)
    else:
        columns = number_columns(PredictiveDistribution(*values), output.spread["level"])
    places = np.flatnonzero(usable_rows(rows, Needs(output.inputs)))
    predicted = pd.DataFrame(dict(zip(output.names, columns, strict=True)), index=places)
    predicted = predicted.reindex(np.arange(len(rows))).set_axis(rows.index)
    temporary = f"{path}.{os.getpid()}.tmp"
    pd.concat([rows[output.kept], predicted], axis=1).to_parquet(temporary)
    os.replace(temporary, path)
    return len(rows), len(places)


# -- rows ------------------------------------------------------------------------------------------


class Needs(NamedTuple):
    """What a row must have to be of use."""

    inputs: Inputs
    others: Sequence[str] = ()
    labels: Sequence[str] = ()  # of the others, those in which a marker of missing values is one

    def present(self, frame: DataFrame, name: str) -> Mask:
        """Which rows have something in a column: a finite number, or anything else."""
        cells = frame[name]
        if cells.dtype.kind in "iuf":
            return np.isfinite(cells.to_numpy(dtype=float, na_value=np.nan))
        markers = MISSING if name in self.labels else ()
        return np.asarray(cells.notna() & ~cells.isin(markers))


def usable_part(frame: DataFrame, needs: Needs, strict: bool) -> DataFrame:
    """The rows that a model can use; if ``strict``, CommandError if one has a hole."""
    if strict:
        for name in [*needs.others, *needs.inputs.names]:
            n_missing = int(np.count_nonzero(~needs.present(frame, name)))
            if n_missing:
                raise CommandError(
                    f"{count(n_missing, 'row')} of a partition miss a value in {name!r}, which "
                    "--strict refuses. Complete them, or run without --strict."
                )
    return frame[usable_rows(frame, needs)]


def usable_rows(frame: DataFrame, needs: Needs) -> Mask:
    """Which rows have all that is needed, and inputs that a model can use."""
    kept = np.ones(len(frame), dtype=bool)
    for name in needs.others if needs.inputs.may_miss else [*needs.others, *needs.inputs.names]:
        kept &= needs.present(frame, name)
    for name in needs.inputs.numbers:
        kept &= ~np.isinf(frame[name].to_numpy(dtype=float, na_value=np.nan))
    return kept
