# SPDX-License-Identifier: BSD-3-Clause
"""What the columns of a table are to a model, new or saved, and the rows that have them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lsgp.cli.console import Voice
from lsgp.cli.errors import CommandError, list_names, require_columns
from lsgp.cli.models import Estimator, names_of_targets
from lsgp.cli.table import (
    LABEL_KINDS,
    NUMERIC_KINDS,
    USELESS_KINDS,
    Chunk,
    FileTable,
    Mask,
    Table,
    present_rows,
    require_numbers,
)
from lsgp.compute.text import count
from lsgp.ensemble.view import target_names
from lsgp.inputs.encoding.columns import NUMERIC
from lsgp.inputs.encoding.encodings import LeftOut

#: Options whose columns are no inputs, unless `--features` says so.
TAKING = ("--target", "--group", "--weight", "--noise-variance", "--ignore")
#: Options that name two inputs, and which is which.
PAIRS = {"--sphere": "longitude, then latitude", "--plane": "east, then north"}
#: Options whose columns must be inputs.
OF_INPUTS = ("--categorical", "--sphere", "--plane")
#: Options of which no two may name the same column. A group, say a station, may be an input too.
APART = (TAKING, ("--target", "--features", "--ignore"), ("--categorical", "--ignore"), OF_INPUTS)


class Roles(NamedTuple):
    """What the columns of a table are to a model."""

    inputs: list[str]  # in the order of the model
    numbers: list[str]  # the inputs that are read as numbers
    may_miss: bool = False  # whether the model knows what to do with missing inputs
    targets: Sequence[str] = ()  # in the order of the model
    are_labels: bool = False
    beside: Mapping[str, Any] = {}  # columns by the names of the parameters of `fit`
    left_out: Sequence[str] = ()  # free columns that cannot be inputs

    @property
    def labels(self) -> Sequence[str]:
        return self.targets if self.are_labels else ()

    @property
    def texts(self) -> list[str]:
        """Columns that are read as they are, beside those that are read as numbers."""
        groups = [self.beside["groups"]] if "groups" in self.beside else []
        texts = [name for name in self.inputs if name not in self.numbers]
        return list(dict.fromkeys([*self.labels, *groups, *texts]))

    @property
    def needed(self) -> list[str]:
        """Columns without which a row is of no use, beside inputs."""
        return [*self.targets, *self.beside.values()]

    def usable(self, frame: pl.DataFrame, strict: bool) -> Mask:
        """Which rows have what is needed, and inputs that a model can use; if strict, all."""
        kept = present_rows(frame, self.needed, self.labels)
        if strict or not self.may_miss:
            return kept & present_rows(frame, self.inputs)
        for name in self.numbers:
            kept &= ~np.isinf(frame[name].cast(pl.Float64).to_numpy())
        return kept

    def require_usable(self, chunk: Chunk, kept: Mask, where: str) -> None:
        """Raise CommandError about the first row that is not kept, if there is one."""
        if kept.all():
            return
        row = int(np.argmin(kept))
        one = chunk.frame[row : row + 1]
        names = [*self.inputs, *self.needed]
        missing = next(name for name in names if not present_rows(one, [name], self.labels)[0])
        what = "finite number" if one[missing].dtype.is_numeric() else "value"
        raise CommandError(
            f"Row {chunk.first_row + row:,} of {where} has no {what} in {missing!r}, which "
            "--strict refuses. Complete it, or run without --strict."
        )

    def rows_for(self, model: Estimator, frame: pl.DataFrame) -> Any:
        """The inputs as the model wants them: with names if it was fitted with names."""
        rows = frame.select(self.inputs).cast(dict.fromkeys(self.numbers, pl.Float64))
        return rows if hasattr(model, "feature_names_in_") else rows.to_numpy()


class Rows:
    """The rows of a table in chunks, each with a mask of usable rows, counted as they come."""

    def __init__(self, table: FileTable, roles: Roles, strict: bool) -> None:
        self.table, self.roles, self.strict = table, roles, strict
        self.n = self.n_incomplete = self.n_without_target = self.n_with_holes = 0
        table.keep_as_text(roles.texts)

    def read(
        self,
        voice: Voice,
        doing: str,
        others: Sequence[str] = (),
        wanted: Sequence[int] | None = None,
    ) -> Iterator[tuple[Chunk, Mask]]:
        """Each chunk, and which of its rows are usable, among the wanted ones if only some are.

        Columns of `others` are read too.
        """
        roles = self.roles
        needed = [name for name in roles.needed if name not in roles.texts]
        numbers = list(dict.fromkeys([*roles.numbers, *needed]))
        texts = list(dict.fromkeys([*roles.texts, *others]))
        with voice.progress(doing, self.table.total) as advance:
            for chunk in self.table.chunks(numbers, texts):
                places = np.arange(chunk.first_row, chunk.first_row + chunk.frame.height)
                is_wanted = np.isin(places, wanted) if wanted is not None else places > 0
                kept = roles.usable(chunk.frame, self.strict)
                if self.strict:
                    roles.require_usable(chunk, kept | ~is_wanted, self.table.name)
                has_target = present_rows(chunk.frame, roles.targets, roles.labels)
                has_inputs = present_rows(chunk.frame, roles.inputs)
                self.n += chunk.frame.height
                self.n_incomplete += int(np.count_nonzero(is_wanted & ~kept))
                self.n_without_target += int(np.count_nonzero(~has_target))
                self.n_with_holes += int(np.count_nonzero(kept & ~has_inputs))
                yield chunk, is_wanted & kept
                advance(chunk.advance)
                if wanted is not None and self.n >= max(wanted):
                    return

    def collect(self, voice: Voice, with_incomplete: bool = False) -> pl.DataFrame:
        """All usable rows, in memory, of which there must be some; or all rows."""
        frames = [
            chunk.frame if with_incomplete else chunk.frame.filter(pl.Series(usable))
            for chunk, usable in self.read(voice, f"Reading {self.table.name}")
        ]
        self.require_some()
        return pl.concat(frames, rechunk=True)

    def say_left_out(self, voice: Voice, fate: str) -> None:
        """Tell how many rows are not usable."""
        if self.n_incomplete:
            voice.note(f"{count(self.n_incomplete, 'row')} of {self.table.name} {fate}")

    def require_some(self) -> None:
        """Raise CommandError if no row is usable."""
        if self.n == self.n_incomplete:
            raise CommandError(
                f"{self.table.name} has no complete row among {self.n}: {self.n_without_target} "
                f"have no target, {self.n - self.n_without_target} miss another value."
            )


@contextmanager
def queries_as_rows(numbers: NDArray[np.integer], where: str) -> Iterator[None]:
    """Let errors about queries of the library, counted from 0, name rows of the table."""
    try:
        yield
    except ValueError as error:

        def row_of(found: re.Match[str]) -> str:
            query = int(found[1])
            return f"row {numbers[query]:,}" if query < len(numbers) else found[0]

        raise CommandError(f"{where}: {re.sub(r'query ([0-9]+)', row_of, str(error))}") from error


# -- of a new model --------------------------------------------------------------------------------


def find_roles(options: argparse.Namespace, table: Table) -> Roles:
    """The roles that options give to columns; all other columns are inputs."""
    named = _named_columns(options)
    for option, names in named.items():
        require_columns(names, table.columns, table.name)
        if option in ("--weight", "--noise-variance"):
            require_numbers(names, table, f"values of {option}")
    for apart in APART:
        for name in table.columns:
            used = [option for option in apart if name in named[option]]
            if len(used) > 1:
                raise CommandError(f"Column {name!r} is both {used[0]} and {used[1]}.")
    targets = named["--target"]
    are_labels = _are_labels(options, table, targets)
    features, left_out = named["--features"], []
    if not features:
        taken = {name for option in TAKING for name in named[option]}
        free = [name for name in table.columns if name not in taken]
        features = [name for name in free if table.columns[name].can_be_input]
        left_out = [name for name in free if name not in features]
        if not features:
            raise CommandError(
                f"{table.name} has no column beside {list_names(sorted(taken))} that can be an "
                "input. A model needs at least one."
            )
    _check_inputs(named, table, features)
    numbers = [
        name
        for name in features
        if table.columns[name].kind in NUMERIC_KINDS and name not in named["--categorical"]
    ]
    given = {
        "sample_weight": options.weight,
        "noise_variance": options.noise_variance,
        "groups": options.group,
    }
    beside = {name: column for name, column in given.items() if column is not None}
    return Roles(features, numbers, True, targets, are_labels, beside, left_out)


def _named_columns(options: argparse.Namespace) -> dict[str, list[str]]:
    """The columns that each option names."""
    found = {"--target": [name for part in options.target for name in part]}
    for option in ("--features", *OF_INPUTS, "--group", "--weight", "--noise-variance", "--ignore"):
        given = getattr(options, option[2:].replace("-", "_")) or []
        found[option] = list(dict.fromkeys([given] if isinstance(given, str) else given))
    for option, which in PAIRS.items():
        if found[option] and len(found[option]) != 2:
            names = ",".join(getattr(options, option[2:]))
            raise CommandError(f"{option} is {names!r}. Give two columns: {which}.")
    return found


def _are_labels(options: argparse.Namespace, table: Table, names: list[str]) -> bool:
    """Whether the targets are labels: as the options say, or by what the column holds."""
    if len(set(names)) < len(names):
        raise CommandError("--target names a column twice.")
    are_labels: bool = options.task == "classification" or (
        options.task == "auto" and len(names) == 1 and table.columns[names[0]].kind in LABEL_KINDS
    )
    if not are_labels:
        require_numbers(names, table, "targets")
    elif len(names) > 1:
        raise CommandError(
            f"--target names {len(names)} columns, but a model of labels has one. Fit one model "
            "for each."
        )
    elif options.noise_variance is not None:
        raise CommandError("--noise-variance is for numbers, and the target is a label.")
    return are_labels


def _check_inputs(named: dict[str, list[str]], table: Table, features: list[str]) -> None:
    """Raise CommandError about columns that cannot be inputs, or must be and are none."""
    for name in features:
        column = table.columns[name]
        if not column.can_be_input:
            of_type = "" if column.kind in USELESS_KINDS else "of type "
            raise CommandError(
                f"Column {name!r} of {table.name} is {of_type}{column.kind}, and cannot be an "
                "input."
            )
    for option in OF_INPUTS:
        for name in named[option]:
            if name not in features:
                raise CommandError(f"Column {name!r} is {option}, but no input.")


# -- of a saved model ------------------------------------------------------------------------------


def find_inputs(model: Any, table: Table) -> Roles:
    """The columns of the table that are the model's inputs."""
    names = getattr(model, "feature_names_in_", None)
    encoder = model.ensemble_.encoder
    if encoder is not None and names is not None:
        used = [each for each in encoder.encodings if not isinstance(each.scheme, LeftOut)]
        inputs = [each.name for each in used]
        require_columns(inputs, table.columns, table.name)
        readable = (*NUMERIC_KINDS, "code", "empty")
        numbers = [
            each.name
            for each in used
            if each.kind in NUMERIC and table.columns[each.name].kind in readable
        ]
        return Roles(inputs, numbers, may_miss=True)
    if names is not None:
        inputs = [str(name) for name in names]
        require_numbers(inputs, table, "inputs")
        return Roles(inputs, inputs)
    # Fitted in Python on an array: the numbers of the table, if they are as many, and no target.
    targets = target_names(model.ensemble_)
    numbers = [
        name
        for name, column in table.columns.items()
        if column.kind in NUMERIC_KINDS and name not in targets
    ]
    if len(numbers) != model.n_features_in_:
        raise CommandError(
            f"The model has {model.n_features_in_} inputs without names, but {table.name} has "
            f"{len(numbers)} columns of numbers ({list_names(numbers)}). Fit the model on a data "
            "frame, or give the table just these columns."
        )
    return Roles(numbers, numbers, may_miss=encoder is not None)


def find_targets(
    model: Estimator, given: list[list[str]] | None, table: Table, roles: Roles
) -> Roles:
    """The roles, with the columns of the table that hold the model's targets, in its order."""
    known = names_of_targets(model)
    names = known if given is None else [name for part in given for name in part]
    if len(names) != len(known):
        raise CommandError(
            f"--target names {len(names)} columns, but the model has {len(known)} targets "
            f"({list_names(known)}). Name one column for each."
        )
    are_labels = model.ensemble_.classification is not None
    if are_labels:
        require_columns(names, table.columns, table.name)
    else:
        require_numbers(names, table, "targets")
    return roles._replace(targets=names, are_labels=are_labels)
