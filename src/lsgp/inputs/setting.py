# SPDX-License-Identifier: BSD-3-Clause
"""One record per setting: signature, docstring, check and option of the command line follow."""

from __future__ import annotations

import builtins
import inspect
import textwrap
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, ClassVar, NamedTuple, Self

from lsgp.inputs.values import Values

#: In place of the default of a setting that must be given.
REQUIRED = inspect.Parameter.empty
REGRESSOR, CLASSIFIER = "LSGPRegressor", "LSGPClassifier"


class Setting(NamedTuple):
    """All that is known of a setting, of an estimator or of a frozen object."""

    name: str
    default: Any
    values: Values
    text: str
    flag: str = ""  # the option of ``lsgp fit``, if there is one
    switch: str = ""  # help of an option that takes no value: the opposite of a default
    estimators: tuple[str, ...] = (REGRESSOR, CLASSIFIER)

    @property
    def parts(self) -> builtins.type[Frozen] | None:
        """The object that holds what only experts touch; its first field alone may stand for it."""
        return self.values.parts

    @property
    def first_sentence(self) -> str:
        """What it is, in a line.

        Examples
        --------
        >>> from lsgp.inputs.setting import Setting
        >>> from lsgp.inputs.values import whole
        >>> Setting("depth", 3, whole(1), "How deep: 1 is not. More is slow.").first_sentence
        'How deep: 1 is not.'
        """
        text = " ".join(self.text.split()).replace("``", "")
        end = text.find(". ")
        return text if end < 0 else text[: end + 1]


class Frozen:
    """A few settings in one object, which cannot be changed and checks itself.

    A subclass lists its fields in ``settings``, the first ``n_positional`` of which need no name.
    The estimator's `set_params` takes ``hyperparameters__lengthscale=...`` and makes a new object,
    so that fields can be searched like settings.
    """

    settings: ClassVar[tuple[Setting, ...]] = ()
    n_positional: ClassVar[int] = 0

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        add_settings(cls, cls.settings, cls.n_positional)

    def __init__(self, *values: Any, **given: Any) -> None:
        raise TypeError("Frozen is what objects of settings are made from.")

    def check(self) -> None:
        """Refuse fields that contradict each other; each by itself has been checked."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Fields by name, as scikit-learn asks for them."""
        return {setting.name: getattr(self, setting.name) for setting in self.settings}

    def replace(self, **changes: Any) -> Self:
        """A new object with other values of some fields."""
        return type(self)(**{**self.get_params(), **changes})

    def __sklearn_clone__(self) -> Self:
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"{type(self).__name__} is frozen: {name} cannot be set. Make a new one, or give the "
            f"estimator's set_params ...__{name}=."
        )

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        pairs = zip(self.get_params().values(), other.get_params().values(), strict=True)
        return all(_is_same(a, b) for a, b in pairs)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        parts: list[str] = []
        for k, setting in enumerate(self.settings):
            value = getattr(self, setting.name)
            if setting.default is REQUIRED or not _is_same(value, setting.default):
                is_plain = k == len(parts) and k < self.n_positional
                parts.append(repr(value) if is_plain else f"{setting.name}={value!r}")
        return f"{type(self).__name__}({', '.join(parts)})"


def _is_same(a: object, b: object) -> bool:
    if type(a) is not type(b):
        return False
    if hasattr(a, "__array__"):
        import numpy as np  # here, so that the help of the command line is quick

        return bool(np.array_equal(np.asarray(a), np.asarray(b)))
    return bool(a == b)


def add_settings(cls: type, settings: tuple[Setting, ...], n_positional: int = 0) -> None:
    """Give a class the constructor that stores these settings, and their docstring section."""

    def __init__(self: Any, *values: Any, **given: Any) -> None:
        refuse_unknown(cls.__name__, given, names, settings=settings)
        try:
            bound = signature.bind(self, *values, **given)
        except TypeError as error:
            how = "=..., ".join(names[:3])
            raise TypeError(f"{cls.__name__}: {error}. Give settings once, as {how}=....") from None
        bound.apply_defaults()
        vars(self).update({name: bound.arguments[name] for name in names})
        if isinstance(self, Frozen):
            for setting in settings:
                setting.values.check(setting.name, bound.arguments[setting.name])
            self.check()

    names = [setting.name for setting in settings]
    kinds = inspect.Parameter
    parameters = [
        kinds(
            setting.name,
            kinds.POSITIONAL_OR_KEYWORD if k < n_positional else kinds.KEYWORD_ONLY,
            default=setting.default,
        )
        for k, setting in enumerate(settings)
    ]
    signature = inspect.Signature([kinds("self", kinds.POSITIONAL_ONLY), *parameters])
    __init__.__signature__ = signature  # type: ignore[attr-defined]
    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    cls.__init__ = __init__  # type: ignore[misc]
    if cls.__doc__:
        head, mark, tail = inspect.cleandoc(cls.__doc__).partition("[settings]")
        cls.__doc__ = f"{head}{section_of(settings) if mark else ''}{tail}"


def section_of(settings: tuple[Setting, ...]) -> str:
    """The section of a docstring that explains the settings.

    Examples
    --------
    >>> from lsgp.inputs.setting import Setting, section_of
    >>> from lsgp.inputs.values import whole
    >>> section_of((Setting("depth", 3, whole(1), "How deep."),)).splitlines()[2:]
    ['depth : int, default=3', '    How deep.']
    """
    wrapper = textwrap.TextWrapper(95, break_long_words=False, break_on_hyphens=False)
    lines = ["Parameters", "----------"]
    for setting in settings:
        default = "" if setting.default is REQUIRED else f", default={setting.default!r}"
        lines.append(f"{setting.name} : {setting.values.description}{default}")
        lines += [f"    {line}" for line in wrapper.wrap(" ".join(setting.text.split()))]
    return "\n".join(lines)


def refuse_unknown(
    owner: str,
    given: Iterable[str],
    names: Sequence[str],
    error: builtins.type[Exception] = TypeError,
    settings: tuple[Setting, ...] = (),
) -> None:
    """Say which setting there is instead of one that there is not, or which object has it."""
    for name in given:
        if name in names:
            continue
        homes = {
            field.name: f"{setting.name}={setting.parts.__name__}({field.name}=...)"
            for setting in settings
            if setting.parts is not None
            for field in setting.parts.settings
        }
        close = get_close_matches(name, [*names, *homes], 1, 0.6) or [
            known for known in [*names, *homes] if name in known or known in name
        ]
        remedy = f"It has {', '.join(names)}."
        if close and close[0] in names:
            remedy = f"Did you mean {close[0]!r}?"
        elif close:
            remedy = f"Did you mean {homes[close[0]]}?"
        raise error(f"{owner} has no setting {name!r}. {remedy}")


def object_of(kind: builtins.type[Frozen]) -> Values:
    """An object of this class, or what its first field may be; None for one without."""
    words = kind.settings[0].values.words if kind.n_positional else (None,)
    return Values(
        words, kind.__name__, f"{kind.__name__}(...)", lambda v: isinstance(v, kind), parts=kind
    )


def part_of(kind: builtins.type[Frozen] | None, value: Any) -> Frozen:
    """The object that holds what only experts touch, of a value that may be a word or None."""
    if isinstance(value, Frozen) or kind is None:
        assert isinstance(value, Frozen)
        return value
    return kind() if value is None else kind(value)


def replace_fields(
    owner: Any, params: dict[str, Any], settings: tuple[Setting, ...]
) -> dict[str, Any]:
    """Replace the objects of which fields are given, as ``localizer__decay``; what is left."""
    kinds = {setting.name: setting.parts for setting in settings}
    left, fields = {}, dict[str, dict[str, Any]]()
    for name, value in params.items():
        home, _, field = name.partition("__")
        if field and (kinds.get(home) or isinstance(getattr(owner, home), Frozen)):
            fields.setdefault(home, {})[field] = value
        elif field:
            left[name] = value
    for home, changes in fields.items():
        now = part_of(kinds.get(home), getattr(owner, home))
        known = [field.name for field in now.settings]
        refuse_unknown(type(now).__name__, changes, known, ValueError)
        setattr(owner, home, now.replace(**changes))
    return left
