# SPDX-License-Identifier: BSD-3-Clause
"""A setting is said once: signature, docstring, check and option of the command line follow.

The command line's help needs all settings, and none of the numerics: NumPy is imported by checks.
"""

from __future__ import annotations

import inspect
import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

#: In place of the default of a setting that must be given.
REQUIRED = inspect.Parameter.empty
REGRESSOR, CLASSIFIER = "LSGPRegressor", "LSGPClassifier"


# -- values ----------------------------------------------------------------------------------------


def _never(value: Any) -> bool:
    return False


class Values(NamedTuple):
    """Some words, None among them if it is allowed, and other values that a test accepts."""

    words: tuple[str | None, ...] = ()
    type: str = ""  # of the other values, as a docstring has it
    noun: str = ""  # what they are, for errors
    accepts: Callable[[Any], bool] = _never  # whether something is one of them
    read: Callable[[str], Any] = str  # makes one of text, or raises ValueError
    metavar: str = "NAME"
    parts: Any = None  # the class whose objects they are, if these hold settings themselves

    @property
    def names(self) -> list[str]:
        """The words without None."""
        return [word for word in self.words if word is not None]

    @property
    def description(self) -> str:
        """The type as a docstring has it: '{"cold", "hot"} or int or None'."""
        words = ", ".join(f'"{word}"' for word in self.names)
        listed = f"{{{words}}}" if len(self.names) > 1 else words
        none = "None" if None in self.words else ""
        return " or ".join(part for part in (listed, self.type, none) if part)

    def check(self, name: str, value: object) -> None:
        """Raise ValueError if a setting cannot have this value."""
        is_word = (value is None or isinstance(value, str)) and value in self.words
        if not is_word and not self.accepts(value):
            raise ValueError(f"{name}={value!r} {self._wrong()}.")

    def parse(self, text: str) -> Any:
        """The value that is written as this text; ValueError says what is wrong with it."""
        if text in self.words:
            return text
        if None in self.words and text.lower() == "none":
            return None
        if self.parts is not None:  # objects have no text
            raise ValueError(f"{text!r} {one_of(*self.names)._wrong()}")
        try:
            return self.read(text)
        except ValueError:
            raise ValueError(f"{text!r} {self._wrong()}") from None

    def _wrong(self) -> str:
        """What is wrong with a value that is none of these."""
        words = ", ".join(map(repr, self.names))
        none = ", or None" if None in self.words and "none" not in self.words else ""
        if self.noun and words:
            return f"is neither {words} nor {self.noun}{none}"
        return f"must be {self.noun}{none}" if self.noun else f"is not one of {words}{none}"


def one_of(*words: str | None) -> Values:
    return Values(words)


def whole(least: int, *words: str | None) -> Values:
    """A whole number that is not less, or one of these words."""

    def accepts(value: Any) -> bool:
        return isinstance(value, Integral) and not is_flag(value) and int(value) >= least

    return Values(words, "int", f"a whole number of at least {least}", accepts, int, "N")


def number(
    noun: str, is_right: Callable[[float], bool], *words: str | None, metavar: str = "NUMBER"
) -> Values:
    """A number of which the test is true, or one of these words."""

    def accepts(value: Any) -> bool:
        return isinstance(value, Real) and not is_flag(value) and is_right(as_float(value))

    return Values(words, "float", noun, accepts, float, metavar)


def positive(*words: str | None, metavar: str = "NUMBER") -> Values:
    """A positive, finite number, or one of these words."""
    return number("a positive, finite number", lambda x: 0 < x < math.inf, *words, metavar=metavar)


def flag(*words: str) -> Values:
    """True or False, or one of these words."""
    return Values(words, "bool", "True or False", is_flag)


def object_of(kind: type[Frozen]) -> Values:
    """An object of this class, or what its first field may be; None for one without."""
    words = kind.settings[0].values.words if kind.n_positional else (None,)
    return Values(
        words, kind.__name__, f"{kind.__name__}(...)", lambda v: isinstance(v, kind), parts=kind
    )


def read_list(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """How text with commas becomes a list, and other text one value."""

    def read_all(text: str) -> Any:
        found = [read(part.strip()) for part in text.split(",")]
        return found[0] if len(found) == 1 else found

    return read_all


def is_flag(value: object) -> bool:
    """Whether it is True or False, of Python or of NumPy."""
    return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")


def as_float(value: Any) -> float:
    """The number in double precision, infinite if it is a whole number of hundreds of digits."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


# -- settings --------------------------------------------------------------------------------------


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
    def parts(self) -> type[Frozen] | None:
        """The object that holds what only experts touch; its first field alone may stand for it."""
        return self.values.parts

    @property
    def first_sentence(self) -> str:
        text = " ".join(self.text.split()).replace("``", "")
        end = text.find(". ")
        return text if end < 0 else text[: end + 1]


def setting(values: Values, text: str, flag: str = "", switch: str = "", **others: Any) -> Any:
    """A setting of the class in whose body it stands, by the name that it has there.

    Its default is the first word that it may be, unless one is given; without words there is none.
    """
    default = others.pop("default", values.words[0] if values.words else REQUIRED)
    return Setting(others.pop("name", ""), default, values, text, flag, switch, **others)


def settings_in(cls: type) -> tuple[Setting, ...]:
    """The settings that stand in the body of a class, in order."""
    found = [(name, own) for name, own in vars(cls).items() if isinstance(own, Setting)]
    return tuple(own._replace(name=own.name or name) for name, own in found)


class Frozen:
    """A few settings in one object, which cannot be changed and checks itself.

    Settings stand in the body of a subclass, the first ``n_positional`` of which need no name.
    The estimator's `set_params` takes ``hyperparameters__lengthscale=...`` and makes a new object,
    so that fields can be searched like settings.
    """

    settings: ClassVar[tuple[Setting, ...]] = ()
    n_positional: ClassVar[int] = 0

    def __init_subclass__(cls, n_positional: int = 0) -> None:
        super().__init_subclass__()
        cls.settings, cls.n_positional = settings_in(cls), n_positional
        for own in cls.settings:
            delattr(cls, own.name)  # objects have values by these names
        add_settings(cls, cls.settings, n_positional)

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
        import numpy as np

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
    parameters = [kinds("self", kinds.POSITIONAL_ONLY)]
    for k, own in enumerate(settings):
        how = kinds.POSITIONAL_OR_KEYWORD if k < n_positional else kinds.KEYWORD_ONLY
        parameters.append(kinds(own.name, how, default=own.default))
    signature = inspect.Signature(parameters)
    __init__.__signature__ = signature  # type: ignore[attr-defined]
    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    cls.__init__ = __init__  # type: ignore[misc]
    if cls.__doc__:
        head, mark, tail = inspect.cleandoc(cls.__doc__).partition("[settings]")
        cls.__doc__ = f"{head}{_section_of(settings) if mark else ''}{tail}"


def _section_of(settings: tuple[Setting, ...]) -> str:
    """The section of a docstring that explains the settings."""
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
    error: type[Exception] = TypeError,
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
        if close:
            is_own = close[0] in names
            remedy = f"Did you mean {repr(close[0]) if is_own else homes[close[0]]}?"
        raise error(f"{owner} has no setting {name!r}. {remedy}")


def part_of(kind: type[Frozen] | None, value: Any) -> Frozen:
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
