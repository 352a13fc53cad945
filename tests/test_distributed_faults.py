# SPDX-License-Identifier: BSD-3-Clause
"""Workers that die, clusters without workers, interrupts, and TLS: processes of their own."""

import datetime as dt
import ipaddress
import os
import threading
import time

import dask
import dask.array as da
import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from distributed import Client, LocalCluster
from distributed.security import Security

import lsgp.distributed
from lsgp import LSGPRegressor
from lsgp.distributed import cluster as cluster_module
from lsgp.distributed import fitting
from lsgp.distributed.cluster import Cluster, NoWorkerError

rng = np.random.default_rng(3)
N = 12_000
X = rng.normal(size=(N, 2))
Y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=N)
NEW = rng.normal(size=(3_000, 2))
SETTINGS = {
    "n_tuning_points": 30,
    "n_neighbors": 10,
    "kernel": "matern32",
    "input_transform": "standardize",
    "n_models": 1,
    "random_state": 0,
}


@pytest.fixture(scope="module")
def workers():
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 20}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local,
        Client(local) as client,
    ):
        yield client


def fit(n_partitions=4):
    return lsgp.distributed.fit(
        LSGPRegressor(**SETTINGS),
        da.from_array(X, chunks=(2_000, 2)),
        da.from_array(Y, chunks=2_000),
        n_partitions=n_partitions,
    )


def test_workers_that_die_at_any_time_change_nothing(workers, tmp_path):
    expected = LSGPRegressor(**SETTINGS).fit(X, Y).predict(NEW, return_std=True)
    stop = threading.Event()
    killed = []

    def kill():
        random = np.random.default_rng(0)
        while not stop.wait(random.uniform(0.3, 1.2)) and len(killed) < 10:
            pids = [info["pid"] for info in _nannies(workers)]
            if len(pids) == 2:
                pid = int(random.choice(pids))
                killed.append(pid)
                os.kill(pid, 9)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        for _ in range(2):
            model = fit()
            found = model.predict(NEW, return_std=True)
            for own, wanted in zip(found, expected, strict=True):
                np.testing.assert_array_equal(own, wanted)
            model.save(tmp_path / "model")
    finally:
        stop.set()
        killer.join()
    assert killed
    loaded = lsgp.distributed.DistributedModel.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(NEW), expected[0])


def _nannies(client):
    """Processes of the workers that are there now."""
    try:
        found = client.run(os.getpid, on_error="ignore")
    except Exception:
        return []
    return [{"pid": pid} for pid in found.values()]


def test_threads_of_workers_and_of_the_core_do_not_multiply(workers):
    model = LSGPRegressor(objective=None, n_jobs=64).fit(X, Y)
    mean = model.predict(da.from_array(NEW, chunks=(1_500, 2)))
    workers.wait_for_workers(2)
    workers.run(refuse_threads)
    np.testing.assert_array_equal(mean.compute(), model.predict(NEW))


def refuse_threads():
    """From now on, the core has the thread of its task and no other."""
    from lsgp.compute import threads

    threads.ThreadPoolExecutor = None


def test_a_cluster_without_workers_is_one_clear_error(monkeypatch):
    monkeypatch.setattr(cluster_module, "PATIENCE", 0.5)
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as local,
        Client(local),
        pytest.raises(NoWorkerError, match=r"No worker is left of the cluster at .*while reading"),
    ):
        fit()


def test_without_a_client_the_error_says_how_to_start_one(monkeypatch):
    monkeypatch.setattr(cluster_module, "running_client", lambda: None)
    with pytest.raises(ValueError, match=r"There is no Dask client\. Start one"):
        fit()


def test_interrupts_cancel_what_was_submitted(monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as own:
        cluster = Cluster(own)
        futures = [cluster.submit("sleep", time.sleep, 2) for _ in range(3)]
        monkeypatch.setattr(cluster_module, "wait", interrupt)
        with pytest.raises(KeyboardInterrupt):
            cluster.gather(futures)
        assert {future.status for future in futures} == {"cancelled"}


def test_connections_may_be_encrypted(tmp_path, monkeypatch):
    monkeypatch.setattr(fitting, "MOST_GATHERED", 0)
    key, certificate = make_certificate(tmp_path)
    security = Security(
        tls_ca_file=certificate,
        require_encryption=True,
        **{
            f"tls_{role}_{what}": path
            for role in ("client", "scheduler", "worker")
            for what, path in (("key", key), ("cert", certificate))
        },
    )
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            protocol="tls://",
            security=security,
            dashboard_address=":0",
        ) as local,
        Client(local, security=security) as client,
    ):
        assert client.scheduler.address.startswith("tls://")
        settings = {"objective": None, "n_neighbors": 10}
        model = lsgp.distributed.fit(
            LSGPRegressor(**settings),
            da.from_array(X[:500], chunks=(200, 2)),
            da.from_array(Y[:500], chunks=200),
            client,
            n_partitions=2,
        )
        one = LSGPRegressor(**settings).fit(X[:500], Y[:500])
        np.testing.assert_array_equal(model.predict(NEW[:50]), one.predict(NEW[:50]))


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
