# SPDX-License-Identifier: BSD-3-Clause
"""Fitted estimators as models of BoTorch, for Bayesian optimization. Imports estimators and below.

Needs the extra ``botorch``; `import lsgp` does not import this.
"""

from __future__ import annotations

try:
    import botorch as _botorch  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"lsgp.botorch needs {error.name}, which is not installed. Run: "
        'pip install "lsgp[botorch]"',
        name=error.name,
    ) from error

from lsgp.botorch.model import LSGPModel

__all__ = ["LSGPModel"]
