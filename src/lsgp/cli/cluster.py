# SPDX-License-Identifier: BSD-3-Clause
"""``lsgp fit`` and ``lsgp predict`` with ``--scheduler``: folders of Parquet, on a Dask cluster."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
from distributed import Client
from numpy.typing import NDArray

import lsgp.distributed
from lsgp import PredictiveDistribution
from lsgp.cli.console import Voice
from lsgp.cli.errors import CommandError, did_you_mean, list_names, require_file
from lsgp.cli.fit import interrupts_end_tuning, say_fitted, say_left_out
from lsgp.cli.info import describe_model, describe_models
from lsgp.cli.models import asked_of_spread, make_estimator
from lsgp.cli.predict import kept_columns, predicted_frame, say_predicted
from lsgp.cli.roles import Roles, find_inputs, find_roles
from lsgp.cli.table import Column, DataType, Table, present_rows
from lsgp.cli.tasks import label_columns, number_columns, task_of
from lsgp.compute.files import replace_folder
from lsgp.compute.text import count
from lsgp.distributed.cluster import Cluster
from lsgp.distributed.model import DistributedModel
from lsgp.distributed.transfer import Estimator, ModelPath


class Folder(Table):
    """A folder of Parquet files, which may be a pattern or an address; `frame` has its rows."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        if not os.path.exists(path) and not any(sign in path for sign in "*:"):
            beside = Path(path).parent
            names = [entry.name for entry in beside.iterdir()] if beside.is_dir() else []
            raise CommandError(f"There is no folder {path}.{did_you_mean(Path(path).name, names)}")
        frame = dd.read_parquet(path)
        kinds = {"i": "number", "u": "number", "f": "number", "b": "flag", "O": "text"}
        self.columns = {
            str(name): Column(kinds.get(dtype.kind, str(dtype)), pl.Unknown)
            for name, dtype in frame.dtypes.items()
        }
        # Partitions that stay as they are, whichever columns are wanted.
        self.frame: Any = dd.from_delayed(frame.to_delayed(), meta=frame._meta, verify_meta=False)

    def usable(self, roles: Roles, strict: bool) -> Any:
        """The rows that a model can use, with the columns that have a role."""
        rows = self.frame[list(dict.fromkeys([*roles.inputs, *roles.needed]))]
        return rows.map_partitions(usable_part, roles, strict, meta=rows._meta)


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


def run_fit(options: argparse.Namespace, voice: Voice) -> None:
    """Fit a model to the rows of a folder, and save it as a file or a folder."""
    refuse_options(options, ("queries", "format", "separator"))
    with connected(options) as client:
        folder = Folder(options.data)
        roles = find_roles(options, folder)
        targets = list(roles.targets)
        model = make_estimator(options, voice, len(roles.inputs), roles.are_labels)
        say_left_out(roles, folder, voice)
        rows = folder.usable(roles, options.strict)
        with interrupts_end_tuning():
            y = targets[0] if len(targets) == 1 else targets
            fitted = lsgp.distributed.fit(model, rows, y, client, **roles.beside)
        fitted.save(options.output)
    unused = [*roles.left_out, *say_fitted(fitted.estimator, voice)]
    rate = f"{fitted.n_rows / voice.seconds:,.0f} rows a second"
    voice.summarize(
        {
            "n_rows": fitted.n_rows,
            "n_partitions": fitted.n_partitions,
            "columns_not_used": unused,
            **describe_model(fitted.estimator),
            "n_train": fitted.n_rows,  # the estimator itself has none
        },
        [
            ("Model", f"{options.output}, in {voice.seconds:.1f} s ({rate})"),
            ("Target", list_names(targets)),
            ("Inputs", list_names(name for name in roles.inputs if name not in unused)),
            ("Rows", f"{fitted.n_rows:,} in {count(fitted.n_partitions, 'partition')}"),
            *describe_models(fitted.estimator),
        ],
    )


def run_predict(options: argparse.Namespace, voice: Voice) -> None:
    """Predict the rows of a folder into another folder, a file for each partition."""
    refuse_options(options, ("format", "separator", "output_format"))
    require_file(options.model)
    target = Path(options.output)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise CommandError(f"{target} is there already. Name a new folder for the predictions.")
    with connected(options) as client:
        cluster = Cluster(client, int(voice.shows_progress))
        folder = Folder(options.data)
        model, estimator = open_model(options.model)
        task = task_of(estimator)
        spread, outputs = asked_of_spread(estimator, options), task.outputs()
        roles = find_inputs(estimator, folder)
        kept = kept_columns(options, folder, roles.inputs, list(outputs))
        written = Output(roles, kept, outputs, spread, task.classes)
        rows = folder.frame[list(dict.fromkeys([*roles.inputs, *kept]))].to_delayed()
        parts = parts_of(model, folder.usable(roles, options.strict), spread)
        with replace_folder(target) as place:
            jobs = [
                dask.delayed(write_partition)(
                    piece,
                    part,
                    written,
                    str(place / f"part-{k:05d}.parquet"),
                    dask_key_name=cluster.key("write"),
                )
                for k, (piece, *part) in enumerate(zip(rows, *parts, strict=True))
            ]
            sizes = cluster.gather(client.compute(jobs), "Predicting")
    n_rows, n_predicted = (sum(each) for each in zip(*sizes, strict=True))
    n_missing = n_rows - n_predicted
    if n_missing:
        voice.note(f"{count(n_missing, 'row')} of {folder.name} not predicted: a missing input")
    say_predicted(options, voice, n_rows, n_missing, folder, [*kept, *outputs], spread)


def open_model(path: str) -> tuple[str | DistributedModel, Estimator]:
    """A model of a folder or of a file, and its estimator."""
    if os.path.isdir(path):
        model = DistributedModel.load(path)
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
    return [list(part.to_delayed()) for part in (found if spread else [found])]


# -- on the workers --------------------------------------------------------------------------------


class Output(NamedTuple):
    """What is written of each partition."""

    roles: Roles
    kept: list[str]  # columns that are copied
    columns: dict[str, DataType]  # of the predictions
    spread: dict[str, Any]
    classes: NDArray[Any] | None


def write_partition(
    rows: pd.DataFrame, parts: Sequence[pd.DataFrame], output: Output, path: str
) -> tuple[int, int]:
    """Write predictions beside the columns that are kept; numbers of rows, and of predicted ones.

    The predictions are those of the usable rows; the others have none.
    """
    values = [np.asarray(part) for part in parts]
    if output.classes is not None:
        columns = label_columns(values[0], output.classes)
    else:
        columns = number_columns(PredictiveDistribution(*values), output.spread["level"])
    usable = output.roles.usable(pl.from_pandas(rows[output.roles.inputs]), strict=False)
    predicted = predicted_frame(columns, output.columns, usable).to_pandas().set_axis(rows.index)
    temporary = f"{path}.{os.getpid()}.tmp"
    pd.concat([rows[output.kept], predicted], axis=1).to_parquet(temporary)
    os.replace(temporary, path)
    return len(rows), int(np.count_nonzero(usable))


def usable_part(rows: pd.DataFrame, roles: Roles, strict: bool) -> pd.DataFrame:
    """The rows that a model can use; if ``strict``, CommandError if one has a hole."""
    frame = pl.from_pandas(rows)
    for name in [*roles.needed, *roles.inputs] if strict else []:
        n_missing = int(np.count_nonzero(~present_rows(frame, [name], roles.labels)))
        if n_missing:
            raise CommandError(
                f"{count(n_missing, 'row')} of a partition miss a value in {name!r}, which "
                "--strict refuses. Complete them, or run without --strict."
            )
    return rows[roles.usable(frame, strict)]
