"""Derive from a schema a msgspec struct that holds the same fields, and the check of one.

A struct takes names, types, bounds, defaults and properties from its schema, and also the
validators: those of a field are called with its value, those of the whole event with the struct. A
schema with a feature that has no counterpart here raises TypeError at import.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from types import GenericAlias, NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, cast, get_args, get_origin

from msgspec import Meta, Struct, defstruct
from msgspec.structs import force_setattr
from pydantic import AfterValidator, BaseModel, BeforeValidator
from pydantic.fields import FieldInfo

from schemas.fields import LARGEST_INT

Step = Callable[[Any], Any]
"""Function that takes a value and returns the value that the schema would keep. Raises ValueError
for a wrong value.
"""
REMEMBERED = 4096
"""Most texts that are remembered to match a pattern, as the same few routers come again and
again.
"""
BOUNDS = ("ge", "gt", "le", "lt", "min_length", "max_length")
"""Bounds that pydantic and msgspec call by the same names."""
Scalar = str | bool | Annotated[int, Meta(ge=-LARGEST_INT, le=LARGEST_INT)] | float | None
Flat = Scalar | list[Scalar] | dict[str, Scalar]
FREE = dict[str, Scalar | list[Scalar] | dict[str, Flat]]
"""Free JSON that can be wrong only by its length: it has few levels, and integers that every
reader keeps exact.
"""


class Twin(NamedTuple):
    """A struct of a schema.

    Attributes:
        check: function that returns a struct with the values that the schema would keep. Raises
            ValueError if the schema would refuse them.
        free: names of the fields of free JSON, whose length is not checked.
    """

    struct: type[Struct]
    check: Step
    free: tuple[str, ...]


class Counterpart(NamedTuple):
    """The type of a field in a struct, and the steps that its value goes through."""

    type: Any
    steps: tuple[Step, ...] = ()


def twin_of(model: type[BaseModel]) -> Twin:
    """Derive the struct of a schema. Raises TypeError."""
    found = {name: _of(_declared(field)) for name, field in model.model_fields.items()}
    struct = defstruct(
        model.__name__,
        [
            (name, found[name].type, *(() if field.is_required() else (field.default,)))
            for name, field in model.model_fields.items()
        ],
        namespace=_properties(model),
        module=__name__,
        frozen=True,
        gc=False,
        kw_only=True,
        forbid_unknown_fields=True,
    )
    steps = {name: list(one.steps) for name, one in found.items()}
    decorators = model.__pydantic_decorators__
    for one in decorators.field_validators.values():
        for name in one.info.fields:
            steps[name].append(one.func)
    wholes = [one.func for one in decorators.model_validators.values()]
    free = tuple(name for name, one in found.items() if FREE in (one.type, *get_args(one.type)))
    return Twin(struct, _check(steps, wholes), free)


def _declared(field: FieldInfo) -> object:
    said = field.metadata
    return Annotated[field.annotation, *said] if said else field.annotation


def _properties(model: type[BaseModel]) -> dict[str, property]:
    """Return the properties that a schema has of its own and of its bases in this package."""
    return {
        name: value
        for base in reversed(model.__mro__)
        if not base.__module__.startswith("pydantic")
        for name, value in vars(base).items()
        if isinstance(value, property)
    }


def _of(declared: object) -> Counterpart:
    """Return the counterpart of a type, with its bounds. Raises TypeError."""
    origin, parts = get_origin(declared), get_args(declared)
    if origin is Annotated:
        return _bounded(_of(parts[0]), _each(parts[1:]))
    if origin in (Union, UnionType) and len(parts) == 2 and NoneType in parts:
        some = _of(parts[parts[0] is NoneType])
        return Counterpart(some.type | None, some.steps)
    if origin is tuple and parts[1:] == (...,):
        one = _of(parts[0])
        return Counterpart(GenericAlias(tuple, (one.type, ...)), tuple(map(_of_each, one.steps)))
    if origin is dict and parts != (str, object):
        key, value = map(_of, parts)
        if value.steps:
            raise TypeError(f"no struct can hold {declared}")
        return Counterpart(
            GenericAlias(dict, (key.type, value.type)), tuple(map(_of_keys, key.steps))
        )
    return _plain(declared)


def _plain(declared: object) -> Counterpart:
    if isinstance(declared, type) and issubclass(declared, BaseModel):
        twin = twin_of(declared)
        return Counterpart(twin.struct, (twin.check,))
    if declared == dict[str, object]:
        return Counterpart(FREE)
    if declared is datetime:
        # As text: the schema's validators know more of times than msgspec.
        return Counterpart(str)
    if get_origin(declared) is Literal or declared in (str, int, float, bool):
        return Counterpart(declared)
    raise TypeError(f"no struct can hold {declared}")


def _each(said: Iterable[object]) -> Iterator[object]:
    """Yield the annotations of a type: bounds and validators."""
    for one in said:
        yield from one.metadata if isinstance(one, FieldInfo) else (one,)


def _bounded(inner: Counterpart, said: Iterable[object]) -> Counterpart:
    """Return a counterpart with the bounds and validators of its type. Raises TypeError."""
    bounds: dict[str, Any] = {}
    steps = list(inner.steps)
    for one in said:
        bound = next((name for name in BOUNDS if hasattr(one, name)), None)
        if bound is not None:
            bounds[bound] = getattr(one, bound)
        elif isinstance(one, BeforeValidator | AfterValidator):
            steps.append(cast(Step, one.func))
        elif hasattr(one, "pattern"):
            steps.append(_matching(one.pattern))
        elif not hasattr(one, "fail_fast"):
            raise TypeError(f"no struct can hold {one}")
    if inner.type == FREE:
        return inner
    return Counterpart(
        Annotated[inner.type, Meta(**bounds)] if bounds else inner.type, tuple(steps)
    )


def _matching(pattern: str) -> Step:
    # Python's `$` also matches before a line break at the end, which the schemas' does not.
    compiled = re.compile(pattern.removesuffix("$") + r"\Z" if pattern.endswith("$") else pattern)

    @lru_cache(REMEMBERED)
    def matching(text: str) -> str:
        if compiled.search(text) is None:
            raise ValueError(pattern)
        return text

    return matching


def _of_each(step: Step) -> Step:
    def of_each(values: tuple[object, ...]) -> tuple[object, ...]:
        kept = tuple(map(step, values))
        return values if kept == values else kept

    return of_each


def _of_keys(step: Step) -> Step:
    def of_keys(values: dict[str, object]) -> dict[str, object]:
        kept = {step(key): value for key, value in values.items()}
        return values if kept == values else kept

    return of_keys


def _check(steps: Mapping[str, list[Step]], wholes: list[Step]) -> Step:
    """Return the function that passes a struct's values through their steps, and returns the
    struct.
    """
    # The function is generated as source without a loop: the loop would take as long as all its
    # steps.
    lines, named = ["def check(event):"], dict[str, object](set_=force_setattr)

    def call(step: Step, value: str) -> str:
        name = f"step{len(named)}"
        named[name] = step
        return f"{name}({value})"

    for name, some in steps.items():
        if some:
            kept = "value"
            for step in some:
                kept = call(step, kept)
            lines += [f" if (value := event.{name}) is not None:", f"  kept = {kept}"]
            lines += [f"  if kept is not value: set_(event, {name!r}, kept)"]
    lines += [f" {call(whole, 'event')}" for whole in wholes]
    exec("\n".join([*lines, " return event"]), named)
    return cast(Step, named["check"])
