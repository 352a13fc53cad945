# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures that the tests of the backends share."""

from functools import partial

import pytest
from emulated_cupy import emulate

from lsgp import backends
from lsgp.backends.cuda import device


@pytest.fixture
def emulated(monkeypatch):
    """A function that puts an emulated device in the place of CuPy, until the test ends."""
    yield partial(emulate, monkeypatch)
    device.forget_devices()


@pytest.fixture
def cuda(request, emulated):
    """The backend of the place that `on_each_place` names."""
    return backends.cuda if request.param == "device" else emulated()[0]
