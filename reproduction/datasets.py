# SPDX-License-Identifier: BSD-3-Clause
"""The data sets of the benchmarks: where they come from, and how to load and split them.

None of the data is part of the package. Files are read from a folder, and otherwise fetched
from OpenML, once.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: The environment variable that names the folder with the data files.
DATA_VARIABLE = "LSGP_DATA"


@dataclass(frozen=True)
class DatasetInfo:
    """One data set of the registry.

    Attributes
    ----------
    name : str
    rows : int
    inputs : int
    target : str
        Name of the target.
    source : str
    licence : str
    sha256 : str
        Of the file ``name.csv.gz`` (``.npz`` for satellite).
    openml_id : int or None
    openml_target : str or None
    """

    name: str
    rows: int
    inputs: int
    target: str
    source: str
    licence: str
    sha256: str
    openml_id: int | None = None
    openml_target: str | None = None

    @property
    def filename(self) -> str:
        return f"{self.name}.npz" if self.name == "satellite" else f"{self.name}.csv.gz"


DATASETS: dict[str, DatasetInfo] = {
    info.name: info
    for info in (
        DatasetInfo(
            name="yacht",
            rows=308,
            inputs=6,
            target="residuary_resistance",
            source="UCI, Yacht Hydrodynamics; OpenML yacht_hydrodynamics",
            licence="CC BY 4.0",
            sha256="f638a979292f195de2098933f901b4146f831de6a5aa7ee7e944dabb01ca74e6",
            openml_id=42370,
            openml_target="Residuary.resistance",
        ),
        DatasetInfo(
            name="boston",
            rows=506,
            inputs=13,
            target="medv",
            source="StatLib, Boston housing (only to reproduce published tables); OpenML boston",
            licence="unknown",
            sha256="d395cb266845ec8fc56e5671b175cc3e0c4a687fd147d5d44aa108c750a92f0f",
            openml_id=531,
            openml_target="MEDV",
        ),
        DatasetInfo(
            name="concrete",
            rows=1030,
            inputs=8,
            target="strength",
            source="UCI, Concrete Compressive Strength; OpenML concrete_compressive_strength",
            licence="CC BY 4.0",
            sha256="89b18a1c45be0f7738f951238b6a2d80d1fc80d9a53a27885c1e1e76cd20fc5c",
            openml_id=44959,
            openml_target="strength",
        ),
        DatasetInfo(
            name="kin8nm",
            rows=8192,
            inputs=8,
            target="y",
            source="DELVE, kin family; OpenML kin8nm",
            licence="unknown",
            sha256="14df437b2268bfeaa3a97bef6891b7ea36110ab9eeab989497106de5bc9b195b",
            openml_id=189,
            openml_target="y",
        ),
        DatasetInfo(
            name="powerplant",
            rows=9568,
            inputs=4,
            target="energy_output",
            source="UCI, Combined Cycle Power Plant",
            licence="CC BY 4.0",
            sha256="df2d28719072d79174a622949d2fc1b2887839bc5cb2afbe4ab9037016c747aa",
        ),
        DatasetInfo(
            name="protein",
            rows=45730,
            inputs=9,
            target="rmsd",
            source="UCI, Physicochemical Properties of Protein Tertiary Structure; "
            "OpenML physiochemical_protein",
            licence="CC BY 4.0",
            sha256="94f696d7d7aad381c8220c48be748e1a369b0b5c67932c0a0ceea1ce915f99bd",
            openml_id=44963,
            openml_target="RMSD",
        ),
        DatasetInfo(
            name="satellite",
            rows=148309,
            inputs=2,
            target="temperature",
            source="Heaton et al. (2019), A case study competition among methods for analyzing "
            "large spatial data; land surface temperatures of NASA's MODIS",
            licence="unknown",
            sha256="1b7c8d748b2190d59a58c694536a11a2ba82d699e39c6278c5aa0948f8821958",
        ),
    )
}


class Dataset(NamedTuple):
    """A data set in memory.

    Attributes
    ----------
    X : array of shape (n, d)
    y : array of shape (n,)
    feature_names : tuple of str
    target_name : str
    n_train : int or None
        Where its authors fixed the split: the rows from here on are the test set.
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    feature_names: tuple[str, ...]
    target_name: str
    n_train: int | None = None


def load_dataset(name: str, data_folder: str | os.PathLike[str] | None = None) -> Dataset:
    """Load a data set of the registry `DATASETS`.

    The file ``name.csv.gz`` is looked for in `data_folder`, then in the folder that the
    environment variable LSGP_DATA names, and must have the registered checksum. Otherwise the
    data are fetched from OpenML, which scikit-learn caches; their rows may come in another
    order there, and `split` then gives another split.

    Parameters
    ----------
    name : str
        One of yacht, boston, concrete, kin8nm, powerplant, protein, satellite.
    data_folder : path, optional
        Folder with the data files.

    Returns
    -------
    Dataset
        Named tuple (X, y, feature_names, target_name, n_train).

    Examples
    --------
    >>> from reproduction.datasets import load_dataset
    >>> load_dataset("yacht").X.shape  # doctest: +SKIP
    (308, 6)
    """
    if name not in DATASETS:
        raise ValueError(f"Data set {name!r} is not known; choose one of {', '.join(DATASETS)}.")
    info = DATASETS[name]
    folders = [Path(f) for f in (data_folder, os.environ.get(DATA_VARIABLE)) if f]
    for folder in folders:
        path = folder / info.filename
        if path.is_file():
            return _read_file(path, info)
    searched = f"in {' or '.join(map(str, folders))}" if folders else "in any folder"
    remedy = f"set {DATA_VARIABLE} to the folder that holds {info.filename}."
    if info.openml_id is None:
        raise FileNotFoundError(
            f"Data set {name!r} was not found {searched}, and no OpenML id is registered for it "
            f"(it comes from {info.source}): {remedy}"
        )
    try:
        return _fetch_openml(info)
    except (OSError, ValueError, KeyError) as error:
        raise FileNotFoundError(
            f"Data set {name!r} was not found {searched}, and could not be fetched from OpenML "
            f"(data id {info.openml_id}: {error}): try again with a connection, or {remedy}"
        ) from error


def split(n: int, seed: int, fraction: float = 0.1) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of the training set and of the test set of the benchmarks, in random order.

    Parameters
    ----------
    n : int
        Number of rows.
    seed : int
        The rows are shuffled by ``numpy.random.default_rng(seed).permutation(n)``.
    fraction : float, default=0.1
        The first ``round(fraction * n)`` of them are the test set.

    Examples
    --------
    >>> from reproduction.datasets import split
    >>> train, test = split(308, seed=0)
    >>> len(train), len(test)
    (277, 31)
    """
    rows = np.random.default_rng(seed).permutation(n)
    n_test = round(fraction * n)
    return rows[n_test:], rows[:n_test]


def _read_file(path: Path, info: DatasetInfo) -> Dataset:
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    if checksum != info.sha256:
        raise ValueError(
            f"{path} has the SHA-256 checksum {checksum[:12]}..., but the data set "
            f"{info.name!r} has {info.sha256[:12]}...: replace the file by an intact copy."
        )
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            X = np.concatenate([arrays["X_train"], arrays["X_test"]])
            y = np.concatenate([arrays["y_train"], arrays["y_test"]])
            return Dataset(X, y, ("longitude", "latitude"), info.target, len(arrays["y_train"]))
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        names = tuple(next(lines).strip().split(","))
        table = np.loadtxt(lines, delimiter=",", ndmin=2)
    # The target is the last column of every file.
    return Dataset(np.ascontiguousarray(table[:, :-1]), table[:, -1].copy(), names[:-1], names[-1])


def _fetch_openml(info: DatasetInfo) -> Dataset:
    from sklearn.datasets import fetch_openml

    with warnings.catch_warnings():
        # Notes of OpenML's on versions, and of scikit-learn's on every retry.
        warnings.simplefilter("ignore")
        # liac-arff is the parser that does not need pandas.
        found: Any = fetch_openml(
            data_id=info.openml_id,
            target_column=info.openml_target,
            as_frame=False,
            parser="liac-arff",
            n_retries=1,
        )
    X = np.array(found.data, dtype=np.float64, order="C")
    y = np.array(found.target, dtype=np.float64)
    if X.shape != (info.rows, info.inputs):
        raise ValueError(f"it has shape {X.shape} there instead of {(info.rows, info.inputs)}")
    for j, name in enumerate(found.feature_names):
        # Numbers that OpenML declares as categories arrive as codes.
        categories = (found.get("categories") or {}).get(name)
        if categories:
            X[:, j] = np.array(categories, dtype=np.float64)[X[:, j].astype(np.intp)]
    return Dataset(X, y, tuple(found.feature_names), info.target)
