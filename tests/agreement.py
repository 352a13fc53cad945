# SPDX-License-Identifier: BSD-3-Clause
"""How closely rows on a cluster give the numbers of one machine."""

import numpy as np


def assert_agree(found, wanted):
    """Arrays, or tuples of them, to 1e-9 of how much the wanted values vary."""
    if isinstance(wanted, tuple):
        assert len(found) == len(wanted)
        for own, other in zip(found, wanted, strict=True):
            assert_agree(own, other)
        return
    wanted = np.asarray(wanted)
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted)
        return
    finite = wanted[np.isfinite(wanted)]
    spread = float(finite.std()) if len(finite) else 0.0
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9 * (spread or 1.0))
