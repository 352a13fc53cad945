# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures that the tests of the backends share."""

import pytest
from emulated_cupy import emulate

from lsgp import backends
from lsgp.backends.cuda import device


@pytest.fixture
def cuda(request, monkeypatch):
    """The backend of the place that `on_each_place` names."""
    if request.param == "device":
        yield backends.cuda
        return
    yield emulate(monkeypatch)[0]
    device.forget_devices()
