# SPDX-License-Identifier: BSD-3-Clause
"""The data sets: registry, local files, OpenML (never contacted here), splits."""

from __future__ import annotations

import urllib.error

import numpy as np
import pytest
import sklearn.datasets
from data_folder import data_folder
from sklearn.utils import Bunch

from reproduction.datasets import DATASETS, load_dataset, split


@pytest.fixture(autouse=True)
def _nothing_configured(monkeypatch):
    """No LSGP_DATA, and no network."""
    monkeypatch.delenv("LSGP_DATA", raising=False)

    def offline(**kwargs):
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", offline)


@pytest.fixture(scope="module")
def folder():
    return data_folder()


@pytest.mark.parametrize("name", DATASETS)
def test_local_files_are_what_the_registry_says(name, folder):
    info = DATASETS[name]
    if not (folder / info.filename).is_file():
        pytest.skip(f"{folder} does not hold {info.filename}")
    data = load_dataset(name, folder)
    assert data.X.shape == (info.rows, info.inputs)
    assert data.y.shape == (info.rows,)
    assert len(data.feature_names) == info.inputs
    assert data.target_name == info.target
    assert data.X.dtype == data.y.dtype == np.float64
    assert data.X.flags.c_contiguous
    assert np.isfinite(data.X).all()
    assert np.isfinite(data.y).all()
    assert (data.n_train == 105_569) if name == "satellite" else (data.n_train is None)


def test_columns_are_read_in_the_order_of_the_file(folder):
    data = load_dataset("yacht", folder)
    assert data.feature_names[0] == "longitudinal_position"
    np.testing.assert_array_equal(data.X[0], [-2.3, 0.568, 4.78, 3.99, 3.17, 0.125])
    assert data.y[0] == 0.11


def test_folder_may_be_given_or_come_from_the_environment(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("LSGP_DATA", str(folder))
    assert load_dataset("yacht").X.shape == (308, 6)
    (tmp_path / "yacht.csv.gz").write_bytes(b"broken")
    monkeypatch.setenv("LSGP_DATA", str(tmp_path))
    assert load_dataset("yacht", folder).X.shape == (308, 6)
    message = r"yacht\.csv\.gz has the SHA-256 checksum .*'yacht' has f638a979292f"
    with pytest.raises(ValueError, match=message):
        load_dataset("yacht", tmp_path)


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match="'iris' is not known; choose one of yacht, boston"):
        load_dataset("iris")


def test_failed_fetch_says_where_it_looked_and_what_to_do(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        load_dataset("kin8nm", tmp_path)
    message = str(caught.value)
    assert str(tmp_path) in message
    assert "OpenML (data id 189: <urlopen error no network>)" in message
    assert "set LSGP_DATA to the folder that holds kin8nm.csv.gz" in message


@pytest.mark.parametrize("name", ["satellite", "powerplant"])
def test_data_without_an_openml_id_say_where_they_come_from(name):
    message = r"no OpenML id is registered for it .*set LSGP_DATA"
    with pytest.raises(FileNotFoundError, match=message):
        load_dataset(name)


def test_fetched_categories_become_numbers_again(monkeypatch):
    rng = np.random.default_rng(0)
    codes = rng.integers(3, size=506)
    table = rng.standard_normal((506, 13))
    table[:, 8] = codes
    names = [f"x{j}" for j in range(13)]
    asked = {}

    def fetch(**kwargs):
        asked.update(kwargs)
        known = {"feature_names": names, "categories": {"x8": ["1", "2", "24"]}}
        return Bunch(data=table, target=np.arange(506), **known)

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    data = load_dataset("boston")
    assert asked["data_id"] == 531
    assert asked["target_column"] == "MEDV"
    np.testing.assert_array_equal(data.X[:, 8], np.array([1.0, 2.0, 24.0])[codes])
    np.testing.assert_array_equal(data.X[:, :8], table[:, :8])
    np.testing.assert_array_equal(data.y, np.arange(506.0))


def test_fetched_data_of_another_shape_are_refused(monkeypatch):
    found = Bunch(data=np.ones((5, 6)), target=np.ones(5), feature_names=list("abcdef"))
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **kwargs: found)
    with pytest.raises(FileNotFoundError, match=r"shape \(5, 6\) there instead of \(308, 6\)"):
        load_dataset("yacht")


@pytest.mark.parametrize("n", [1, 2, 308, 506, 1030, 9568])
def test_split_is_the_one_of_the_benchmarks(n):
    train, test = split(n, seed=3)
    rows = np.random.default_rng(3).permutation(n)
    np.testing.assert_array_equal(test, rows[: round(0.1 * n)])
    np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(n))
    assert [len(part) for part in split(100, seed=0, fraction=0.25)] == [75, 25]
