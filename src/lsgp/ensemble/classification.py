# SPDX-License-Identifier: BSD-3-Clause
"""How classes are told: in `ensemble`, under this name while other rooms still ask for it here."""

from lsgp.ensemble.ensemble import Classification

__all__ = ["Classification"]
