# SPDX-License-Identifier: BSD-3-Clause
"""What backends share that leave the work to others, and decide who does it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from lsgp.backends.contract import LocalSystems

Asked = TypeVar("Asked", covariant=True)
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Forwarding(Protocol[Asked]):
    """An object that leaves the answer to another one."""

    def run(self, ask: Callable[[Asked], Result]) -> Result:
        """The answer of whoever is to be asked."""


def forwarded(
    method: Callable[Concatenate[Asked, Arguments], Result],
) -> Callable[Concatenate[Forwarding[Asked], Arguments], Result]:
    """The method of this name of whoever is to be asked, as a method of the one who forwards."""

    @wraps(method)
    def forward(
        self: Forwarding[Asked], /, *given: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        def ask(other: Asked) -> Result:  # type: ignore[misc]
            answer: Result = getattr(other, method.__name__)(*given, **named)
            return answer

        return self.run(ask)

    return forward


class ForwardingBackend(ABC):
    """See `Backend`. All that is asked goes through `run`."""

    is_device = True
    factors_once = True
    is_slow = False

    @abstractmethod
    def run(self, ask: Callable[[LocalSystems], Result]) -> Result:
        """The answer of whoever is to be asked."""

    knows = forwarded(LocalSystems.knows)
    knows_metric = forwarded(LocalSystems.knows_metric)
    prepare = forwarded(LocalSystems.prepare)
    search = forwarded(LocalSystems.search)
    search_units = forwarded(LocalSystems.search_units)
    predict = forwarded(LocalSystems.predict)
    predict_at = forwarded(LocalSystems.predict_at)
    coefficients = forwarded(LocalSystems.coefficients)
    differentiate = forwarded(LocalSystems.differentiate)
    score = forwarded(LocalSystems.score)
    score_many = forwarded(LocalSystems.score_many)
    workspace_bytes = forwarded(LocalSystems.workspace_bytes)
    plan = forwarded(LocalSystems.plan)
