# SPDX-License-Identifier: BSD-3-Clause
"""What the columns of a table are to a model that is fitted to it."""

from __future__ import annotations

import argparse
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


#: Options whose columns are no inputs, unless `--features` says so.
TAKING = ("--target", "--group", "--weight", "--noise-variance", "--ignore")
#: Options that name two inputs, and which is which.
PAIRS = {"--sphere": "longitude, then latitude", "--plane": "east, then north"}
#: Options whose columns must be inputs.
OF_INPUTS = ("--categorical", "--sphere", "--plane")
#: Options of which no two may name the same column. A group, say a station, may be an input too.
APART = (TAKING, ("--target", "--features", "--ignore"), ("--categorical", "--ignore"), OF_INPUTS)


def find_roles(options: argparse.Namespace, table: Columns) -> Roles:
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
    targets = _find_targets(options, table, named["--target"])
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
    return Roles(
        Inputs(features, numbers, may_miss=True),
        targets,
        options.group,
        options.weight,
        options.noise_variance,
        tuple(left_out),
    )


def _named_columns(options: argparse.Namespace) -> dict[str, list[str]]:
    """The columns that each option names."""
    one = {
        "--group": options.group,
        "--weight": options.weight,
        "--noise-variance": options.noise_variance,
    }
    return {
        "--target": [name for part in options.target for name in part],
        "--features": list(dict.fromkeys(options.features or ())),
        "--categorical": options.categorical or [],
        "--sphere": options.sphere or [],
        "--plane": options.plane or [],
        **{option: [] if name is None else [name] for option, name in one.items()},
        "--ignore": options.ignore or [],
    }


def _find_targets(options: argparse.Namespace, table: Columns, names: list[str]) -> Targets:
    """Numbers, or one column of labels: as the options say, or by what the column holds."""
    if len(set(names)) < len(names):
        raise CommandError("--target names a column twice.")
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


def _check_inputs(named: dict[str, list[str]], table: Columns, features: list[str]) -> None:
    """Raise CommandError about columns that cannot be inputs, or must be and are none."""
    for name in features:
        column = table.columns[name]
        if not column.can_be_input:
            of_type = "" if column.kind in USELESS_KINDS else "of type "
            raise CommandError(
                f"Column {name!r} of {table.name} is {of_type}{column.kind}, and cannot be an "
                "input."
            )
    for option, names in named.items():
        if option in PAIRS and names and len(set(names)) != 2:
            raise CommandError(
                f"{option} is {','.join(names)!r}. Give two columns: {PAIRS[option]}."
            )
        for name in names:
            if option in OF_INPUTS and name not in features:
                raise CommandError(f"Column {name!r} is {option}, but no input.")
