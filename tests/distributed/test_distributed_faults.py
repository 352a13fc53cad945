# SPDX-License-Identifier: BSD-3-Clause
"""Workers that die, clusters without workers, interrupts, and TLS: processes of their own."""

import datetime as dt
import gc
import ipaddress
import time
from contextlib import contextmanager

import dask
import dask.array as da
import numpy as np
import pytest
from agreement import assert_agree, chunked
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from distributed import Client, LocalCluster
from distributed.security import Security
from fatal import deadly

import lsgp.distributed
from lsgp import LSGPRegressor
from lsgp.compute import threads
from lsgp.distributed import cluster as cluster_module
from lsgp.distributed.cluster import Cluster, NoWorkerError
from lsgp.distributed.folder import write_partition

rng = np.random.default_rng(3)
N = 12_000
X = rng.normal(size=(N, 2))
Y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=N)
NEW = rng.normal(size=(3_000, 2))
SETTINGS = {
    "localizer__reach": 1.0,  # nodes are of rows in memory
    "effort__boosting": False,  # and so are trees
    "effort__n_points": 30,
    "n_neighbors": 10,
    "kernel": "matern32",
    "input_transform": "standardize",
    "effort__n_models": 1,
    "random_state": 0,
}
FEW = LSGPRegressor().set_params(objective=None, n_neighbors=10)


def fit():
    model = LSGPRegressor().set_params(**SETTINGS)
    return lsgp.distributed.fit(model, chunked(X, 2_000), chunked(Y, 2_000), n_partitions=4)


def fit_few():
    rows = chunked(X[:500], 200), chunked(Y[:500], 200)
    return lsgp.distributed.fit(FEW, *rows, n_partitions=3)


@contextmanager
def threads_of(n_workers=1, security=None, **settings):
    """A cluster in this process, and its client."""
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=False,
            dashboard_address=":0",
            security=security,
            **settings,
        ) as local,
        Client(local, security=security) as client,
    ):
        yield local, client


@pytest.mark.usefixtures("quick_workers")
def test_a_worker_that_dies_when_a_phase_begins_changes_nothing(tmp_path, monkeypatch):
    """In four phases of one job; `benchmarks/cluster.py kill` has all of them."""
    monkeypatch.setattr(cluster_module, "PATIENCE", 120.0)  # until processes have started again
    phases = ["partitioning", "searching", "answering", "saving"]
    expected = LSGPRegressor().set_params(**SETTINGS).fit(X, Y).predict(NEW[:300], return_std=True)
    killed = tmp_path / "killed"
    killed.mkdir()
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 20}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local,
        Client(local) as client,
    ):
        deadly(client, killed, phases)
        model = fit()
        found = model.predict(NEW[:300], return_std=True)
        np.testing.assert_allclose(found, expected, atol=1e-4)
        model.save(tmp_path / "model")
    loaded = lsgp.distributed.DistributedModel.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(NEW[:300]), found[0])
    assert {path.name for path in killed.iterdir()} == set(phases)


def test_threads_of_workers_and_of_the_core_do_not_multiply(monkeypatch):
    model = LSGPRegressor(objective=None, n_jobs=64).fit(X, Y)
    expected = model.predict(NEW)
    with threads_of():
        mean = model.predict(da.from_array(NEW, chunks=(1_500, 2)))
        # From now on, the core has the thread of its task and no other.
        monkeypatch.setattr(threads, "ThreadPool", None)
        np.testing.assert_array_equal(mean.compute(), expected)


def test_predictions_without_workers_are_one_clear_error(monkeypatch, in_parts):
    monkeypatch.setattr(cluster_module, "PATIENCE", 0.5)
    with threads_of() as (local, client):
        model = fit_few()
        local.scale(0)
        while client.scheduler_info(n_workers=-1)["workers"]:
            time.sleep(0.05)
        with pytest.raises(NoWorkerError, match=r"No worker is left .*while predicting had to be"):
            model.predict(NEW[:10])


def test_a_client_that_disconnects_leaves_no_half_written_model(monkeypatch, tmp_path, in_parts):
    with threads_of() as (_, client):
        model = fit_few()

        def write(*arguments):
            client.close()  # in the middle of the save
            return write_partition(*arguments)

        monkeypatch.setattr("lsgp.distributed.model.write_partition", write)
        with pytest.raises(Exception, match=r"."):
            model.save(tmp_path / "model")
        assert list(tmp_path.iterdir()) == []


def test_a_cluster_without_workers_or_a_client_is_one_clear_error(monkeypatch):
    monkeypatch.setattr(cluster_module, "PATIENCE", 0.5)
    message = r"No worker is left of the cluster at .*while reading"
    with threads_of(n_workers=0), pytest.raises(NoWorkerError, match=message):
        fit()
    monkeypatch.setattr(cluster_module, "running_client", lambda: None)
    with pytest.raises(ValueError, match=r"There is no Dask client\. Start one"):
        fit()


def interrupt(*_, **__):
    raise KeyboardInterrupt


def test_interrupts_cancel_what_was_submitted_and_leave_no_tasks(monkeypatch):
    monkeypatch.setattr("lsgp.distributed.fitting.fit_models", interrupt)
    with threads_of() as (local, client):
        with pytest.raises(KeyboardInterrupt):
            fit()
        gc.collect()
        deadline = time.monotonic() + 10
        while local.scheduler.tasks and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not local.scheduler.tasks
        cluster = Cluster(client)
        futures = [cluster.submit("sleep", time.sleep, 2) for _ in range(3)]
        monkeypatch.setattr(cluster_module, "wait", interrupt)
        with pytest.raises(KeyboardInterrupt):
            cluster.gather(futures)
        assert {future.status for future in futures} == {"cancelled"}


def test_connections_may_be_encrypted(tmp_path, in_parts):
    key, certificate = make_certificate(tmp_path)
    files = {
        f"tls_{role}_{what}": path
        for role in ("client", "scheduler", "worker")
        for what, path in (("key", key), ("cert", certificate))
    }
    security = Security(tls_ca_file=certificate, require_encryption=True, **files)
    with threads_of(security=security, protocol="tls://") as (_, client):
        assert client.scheduler.address.startswith("tls://")
        one = LSGPRegressor().set_params(objective=None, n_neighbors=10).fit(X[:500], Y[:500])
        assert_agree(fit_few().predict(NEW[:50]), one.predict(NEW[:50]))


def make_certificate(folder):
    """A key and a certificate signed by itself, for this machine and this hour."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "key.pem", folder / "certificate.pem"
    paths[0].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    paths[1].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return tuple(map(str, paths))
