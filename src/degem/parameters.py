"""Parameters of detectors: their names, types and ranges, read off the class that declares them.

A detector is a dataclass; each field is a parameter, its annotation says what it may be. ``__init__`` only stores,
:func:`check` is called by ``fit``, and :func:`parse` turns the text of ``--set name=value`` into a value.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from functools import cache
from typing import Annotated, Any, get_type_hints

from pydantic import Field, TypeAdapter, ValidationError

from degem.errors import ParameterError, quoted

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Dropout = Annotated[float, Field(ge=0, lt=1)]  # what is kept is scaled by 1 / (1 − dropout)
# The upper bounds are there for model files from strangers; no honest use comes near them.
Count = Annotated[int, Field(ge=1, le=10_000_000)]
Width = Annotated[int, Field(ge=1, le=65_536)]  # of a layer, a latent, a projection
Depth = Annotated[int, Field(ge=1, le=1_000)]  # layers, hops, heads, flows
NonNegativeInt = Annotated[int, Field(ge=0, le=2**32 - 1)]


def present_device(device: str) -> str:
    """The device, if this machine has it.

    Example:
        >>> present_device("cpu")
        'cpu'
    """
    import torch  # slow to load, and most of what parameters are asked needs none

    if device != "cpu" and not re.fullmatch(r"cuda(:\d{1,3})?", device):
        raise ParameterError(f"device {quoted(device)}: choose cpu, cuda or cuda:N")
    if device != "cpu" and not torch.cuda.is_available():
        raise ParameterError(
            f"device {quoted(device)}: this machine has no CUDA device, or torch was built without CUDA"
        )
    return device


def names(owner: Any) -> dict[str, Any]:
    """Every parameter of a dataclass (or instance) with its annotation; nested ones as ``outer__inner``."""
    kind = owner if isinstance(owner, type) else type(owner)
    hints = _hints(kind)
    found: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        found[field.name] = hints[field.name]
        if dataclasses.is_dataclass(hints[field.name]):
            found |= {f"{field.name}__{inner}": hint for inner, hint in names(hints[field.name]).items()}
    return found


@cache
def _hints(kind: type) -> dict[str, Any]:
    """Annotations are texts, and making types of them is slow."""
    return get_type_hints(kind, include_extras=True)


def values(owner: Any, *, deep: bool = True) -> dict[str, Any]:
    """The value of every parameter; with ``deep`` those of nested settings too, as ``outer__inner``."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(owner):
        value = getattr(owner, field.name)
        found[field.name] = value
        if deep and dataclasses.is_dataclass(value):
            found |= {f"{field.name}__{inner}": nested for inner, nested in values(value).items()}
    return found


def check(owner: Any) -> None:
    """Raise :class:`ParameterError` for the first parameter whose value has the wrong type or range."""
    known = names(owner)
    for name, value in values(owner).items():
        if not dataclasses.is_dataclass(value):
            _validated(type(owner).__name__, name, known[name], value, strict=True)


def parse(kind: type, name: str, text: str) -> Any:
    """The value that ``text`` stands for, for parameter ``name`` of ``kind``.

    Example:
        >>> from degem import DeGEM
        >>> parse(DeGEM, "num_hops", "3")
        3
    """
    known = names(kind)
    name = name.replace(".", "__")
    require_known(kind, name)
    return _validated(kind.__name__, name, known[name], None if text.lower() == "none" else text, strict=False)


def require_known(kind: type, name: str) -> None:
    """Raise :class:`ParameterError` with the nearest name if ``kind`` has no such parameter."""
    known = names(kind)
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(sorted(known))}"
        raise ParameterError(f"{kind.__name__} has no parameter {quoted(name)}: {hint}")


def _validated(owner: str, name: str, annotation: Any, value: Any, *, strict: bool) -> Any:
    try:
        return TypeAdapter(annotation).validate_python(value, strict=strict)
    except ValidationError as error:
        problem = error.errors()[0]["msg"]
        problem = problem[0].lower() + problem[1:]
        raise ParameterError(f"{owner}: {name} = {quoted(value)} is not allowed: {problem}") from None


def from_json(kind: type, stored: dict[str, Any], *, whole: bool = False) -> dict[str, Any]:
    """Parameter values as JSON gave them back, nested settings made into their dataclasses again.

    Arguments:
        kind: The class that declares them.
        stored: The values by name.
        whole: Whether all of them must be there.
    """
    known = names(kind)
    for name in stored:
        require_known(kind, name)
    for name in (field.name for field in dataclasses.fields(kind)) if whole else ():
        if name not in stored:
            raise ParameterError(f"{kind.__name__}: the parameter {name!r} is missing")
    values = {}
    for name, value in stored.items():
        if dataclasses.is_dataclass(known[name]) and isinstance(value, dict):
            value = known[name](**from_json(known[name], value, whole=whole))
        values[name] = _validated(kind.__name__, name, known[name], value, strict=False)
    return values
