# SPDX-License-Identifier: BSD-3-Clause
"""A model file is never half written, whatever happens while it is saved."""

import os
import stat
import subprocess
import sys

import pytest
from storage_cases import fit_case, same_predictions

from lsgp import LSGPRegressor, ModelFileError

#: Savings that are killed at random moments. More were tried once: 500.
N_KILLED = 50


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_a_failed_save_leaves_the_old_file_and_nothing_else(saved_model, monkeypatch, error):
    before = saved_model.read_bytes()

    def fail(descriptor):
        raise error

    monkeypatch.setattr(os, "fsync", fail)
    expected = KeyboardInterrupt if error is KeyboardInterrupt else OSError
    with pytest.raises(expected) as caught:
        fit_case("several_targets").save(saved_model)
    if expected is OSError:
        assert caught.value.errno == 28
        assert caught.value.strerror == (
            f"The model was not saved to {saved_model}: No space left on device. The file that was "
            "there is unchanged. Free some space, or save elsewhere."
        )
    assert saved_model.read_bytes() == before
    assert os.listdir(saved_model.parent) == [saved_model.name]


@pytest.mark.skipif(sys.platform == "win32", reason="file size limits are of POSIX")
def test_a_full_disk_leaves_the_old_file_and_nothing_else(saved_model):
    import resource

    before = saved_model.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"The model was not saved to .* Free some space"):
            fit_case("several_targets").save(saved_model)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert saved_model.read_bytes() == before
    assert os.listdir(saved_model.parent) == [saved_model.name]


def test_saving_where_there_is_no_folder_or_no_file_is_explained(tmp_path):
    model = fit_case("given")
    with pytest.raises(FileNotFoundError, match="Create the folder first"):
        model.save(tmp_path / "missing" / "model.lsgp")
    with pytest.raises(ModelFileError, match=r"is not a file\. Give the path of a file to save to"):
        model.save(tmp_path)
    if os.path.exists("/dev/null"):
        with pytest.raises(ModelFileError, match="is not a file"):
            model.save("/dev/null")


@pytest.mark.skipif(sys.platform == "win32", reason="links and modes are of POSIX")
def test_links_and_permissions_stay(saved_model):
    link = saved_model.with_name("link.lsgp")
    link.symlink_to(saved_model.name)
    saved_model.chmod(0o640)
    fit_case("several_targets").save(link)
    assert link.is_symlink()
    assert stat.S_IMODE(saved_model.stat().st_mode) == 0o640
    assert same_predictions(LSGPRegressor.load(saved_model), fit_case("several_targets"))


KILL_SCRIPT = """
import os, random, signal, sys, time
import numpy as np
from lsgp import Hyperparameters, LSGPRegressor

path, n_killed = sys.argv[1], int(sys.argv[2])
X = np.random.default_rng(0).normal(size=(20_000, 3))
given = [Hyperparameters(lengthscale=ell) for ell in (1.0, 2.0)]
models = [LSGPRegressor(objective=None, hyperparameters=own).fit(X, X[:, 0]) for own in given]
began = time.perf_counter()
for model in models:
    model.save(path)
seconds = (time.perf_counter() - began) / 2
random = random.Random(0)
seen, n_partial = set(), 0
for _ in range(n_killed):
    models.reverse()  # so that the first to be written is another one each time
    child = os.fork()
    if child == 0:
        while True:
            for model in models:
                model.save(path)
    time.sleep(random.uniform(0, 6 * seconds))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    loaded = LSGPRegressor.load(path)  # with its checksums
    assert loaded.n_features_in_ == 3
    seen.add(float(loaded.model_.lengthscale[0]))
    folder = os.path.dirname(path)
    for name in set(os.listdir(folder)) - {os.path.basename(path)}:
        assert name.startswith(".") and name.endswith(".tmp"), name
        n_partial += 1
        os.unlink(os.path.join(folder, name))
print(len(seen), n_partial)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks to be killed are of POSIX")
def test_saving_that_is_killed_leaves_the_old_file_or_the_new_one(tmp_path):
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", KILL_SCRIPT, tmp_path / "model.lsgp", str(N_KILLED)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    n_seen, n_partial = map(int, result.stdout.split())
    # Both models were found, and many of the moments were in the middle of writing.
    assert n_seen == 2
    assert n_partial > N_KILLED // 5
