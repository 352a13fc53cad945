# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures that the tests of the search share."""

import pytest

from lsgp import _core


@pytest.fixture(params=_core.available_instruction_sets())
def instruction_set(request, monkeypatch):
    monkeypatch.setattr(_core, "core", _core.load(request.param))
