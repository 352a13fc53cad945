# SPDX-License-Identifier: BSD-3-Clause
"""What the columns of a table are to a model that is fitted to it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

from lsgp.cli.errors import CommandError, list_names, require_columns
from lsgp.cli.rows import Inputs, Targets
from lsgp.cli.table import LABEL_KINDS, NUMERIC_KINDS, USELESS_KINDS, Columns, require_numbers


class Roles(NamedTuple):
    """What the columns of a table are to a model."""

    inputs: Inputs
    targets: Targets
    group: str | None = None
    weight: str | None = None
    noise_variance: str | None = None
    left_out: tuple[str, ...] = ()  # free columns that cannot be inputs

    @property
    def needed(self) -> list[str]:
        """Numbers without which a row is of no use, beside targets."""
        return [name for name in (self.weight, self.noise_variance) if name is not None]

    @property
    def beside(self) -> dict[str, Any]:
        """Columns beside inputs and targets, by the names of the parameters of `fit`."""
        named = {
            "sample_weight": self.weight,
            "noise_variance": self.noise_variance,
            "groups": self.group,
        }
        return {name: column for name, column in named.items() if column is not None}


def find_roles(options: argparse.Namespace, table: Columns) -> Roles:
    """The roles that options give to columns; those that none is said of are inputs."""
    targets = _find_targets(options, table)
    taken = dict.fromkeys(targets.names, "--target")
    for option, name in (
        ("--group", options.group),
        ("--weight", options.weight),
        ("--noise-variance", options.noise_variance),
    ):
        if name is None:
            continue
        require_columns([name], table.columns, table.name)
        if name in taken:
            raise CommandError(f"Column {name!r} is both {taken[name]} and {option}.")
        taken[name] = option
        if option != "--group":
            require_numbers([name], table, f"values of {option}")
    _check_ignored(options, table, taken)
    left_out: list[str] = []
    if options.features is None:
        free = [name for name in table.columns if name not in (*taken, *(options.ignore or ()))]
        features = [name for name in free if table.columns[name].can_be_input]
        left_out = [name for name in free if name not in features]
        if not features:
            raise CommandError(
                f"{table.name} has no column beside {list_names(taken)} that can be an input. A "
                "model needs at least one."
            )
    else:
        features = list(dict.fromkeys(options.features))
        _check_features(features, targets, table)
    _check_inputs_of_options(options, table, features)
    numbers = [
        name
        for name in features
        if table.columns[name].kind in NUMERIC_KINDS and name not in (options.categorical or ())
    ]
    return Roles(
        Inputs(features, numbers, may_miss=True),
        targets,
        options.group,
        options.weight,
        options.noise_variance,
        tuple(left_out),
    )


def _find_targets(options: argparse.Namespace, table: Columns) -> Targets:
    """Numbers, or one column of labels: as the options say, or by what the column holds."""
    names = [name for part in options.target for name in part]
    if len(set(names)) < len(names):
        raise CommandError("--target names a column twice.")
    require_columns(names, table.columns, table.name)
    are_labels = options.task == "classification" or (
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
    return Targets(names, are_labels)


def _check_ignored(options: argparse.Namespace, table: Columns, taken: dict[str, str]) -> None:
    ignored, categorical = options.ignore or (), options.categorical or ()
    require_columns([*categorical, *ignored], table.columns, table.name)
    used = (
        dict.fromkeys(options.features or (), "--features")
        | dict.fromkeys(categorical, "--categorical")
        | taken
    )
    for name in ignored:
        if name in used:
            raise CommandError(f"Column {name!r} is both {used[name]} and --ignore.")


def _check_features(features: list[str], targets: Targets, table: Columns) -> None:
    require_columns(features, table.columns, table.name)
    for name in features:
        column = table.columns[name]
        if not column.can_be_input:
            of_type = "" if column.kind in USELESS_KINDS else "of type "
            raise CommandError(
                f"Column {name!r} of {table.name} is {of_type}{column.kind}, and cannot be an "
                "input."
            )
        # A group (a station, say) may tell something; a target may not.
        if name in targets.names:
            raise CommandError(f"Column {name!r} is both --target and in --features.")


def _check_inputs_of_options(
    options: argparse.Namespace, table: Columns, features: list[str]
) -> None:
    """Raise CommandError about columns of options that must be inputs and are none."""
    for option, names, order in _pairs(options):
        if len(set(names)) != 2:
            raise CommandError(f"{option} is {','.join(names)!r}. Give two columns: {order}.")
    categorical = options.categorical or []
    named = [("--categorical", categorical), *((pair[0], pair[1]) for pair in _pairs(options))]
    for option, names in named:
        require_columns(names, table.columns, table.name)
        for name in names:
            if name not in features:
                raise CommandError(f"Column {name!r} is {option}, but no input.")
            if option != "--categorical" and name in categorical:
                raise CommandError(f"Column {name!r} is both --categorical and {option}.")


def _pairs(options: argparse.Namespace) -> Iterator[tuple[str, list[str], str]]:
    if options.sphere:
        yield "--sphere", options.sphere, "longitude, then latitude"
    if options.plane:
        yield "--plane", options.plane, "east, then north"
