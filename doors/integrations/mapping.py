"""Read a mapping file: the JSONPath of each event field in a payload, and how values become rewards
in [0, 1].

topic: rewards
each: $.feedback[*]            # optional: one event for each match
fields:
  request_id: $.trace
  router_id: {value: chat}
  reward: {path: $.stars, scale: [1, 5]}
  source: {path: $.by, values: {staff: human}, default: user}
  observed_at: {path: $.at, time: true}
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from jsonpath_ng import parse
from jsonpath_ng.exceptions import JSONPathError
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from doors.integrations.found import Defaults, Found, Unconvertible, number, rfc3339
from ground.files.yaml_text import BadYaml, read_yaml
from ground.json_values import Json
from schemas import Reason

THUMBS = {
    "up": 1.0,
    "down": 0.0,
    "+1": 1.0,
    "-1": 0.0,
    "👍": 1.0,
    "👎": 0.0,
    "1": 1.0,
    "0": 0.0,
    "true": 1.0,
    "false": 0.0,
}
"""Rewards of labels given as words, in lower case."""
Strict = ConfigDict(extra="forbid", frozen=True)


class BadMapping(Exception):
    """The mapping file cannot be used; the message says where."""

    reason = "bad_mapping"
    retriable = False


@lru_cache(1024)
def _compiled(path: str) -> Any:
    return parse(path)


def _readable(path: str) -> str:
    try:
        _compiled(path)
    except (JSONPathError, Exception) as error:  # the parser raises bare exceptions as well
        raise ValueError(f"{path!r} is not a JSONPath: {error}") from None
    return path


JsonPath = Annotated[str, AfterValidator(_readable)]


class Rule(BaseModel):
    """The rule for one field: its path, the meaning of its values, and its default.

    `scale: [low, high]` maps numbers to [0, 1], stars for example; `thumbs` maps up and down, true
    and false, 1 and −1.
    """

    model_config = Strict

    path: JsonPath | None = None
    value: Any = None
    default: Any = None
    values: Mapping[str, object] | None = None
    scale: tuple[float, float] | None = None
    thumbs: bool = False
    time: bool = False

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.path is None) == (self.value is None):
            raise ValueError("give either path or value")
        if self.scale is not None and not self.scale[0] < self.scale[1]:
            raise ValueError("scale is [low, high]")
        return self

    def of(self, document: Json, name: str) -> Json:
        """Return the field's value in a payload. Raises Unconvertible."""
        if self.path is None:
            return self.value
        # The first match, as JSONPath orders them; `each` is for payloads with many.
        found = next((match.value for match in _compiled(self.path).find(document)), None)
        return self.default if found is None else self._meant(found, name)

    def _meant(self, found: Json, name: str) -> Json:
        if self.values is not None:
            if str(found) not in self.values and self.default is None:
                raise Unconvertible(f"{name}: has a value that the mapping does not name")
            return self.values.get(str(found), self.default)
        if self.thumbs:
            return _thumb(found, name)
        if self.scale is not None:
            low, high = self.scale
            return (number(found, name) - low) / (high - low)
        return rfc3339(found, name) if self.time else found


def _thumb(found: Json, name: str) -> float:
    key = str(found).strip().lower()
    if key not in THUMBS:
        raise Unconvertible(f"{name}: is neither up nor down")
    return THUMBS[key]


class FieldMapping(BaseModel):
    """The rules of a mapping file."""

    model_config = Strict

    topic: Literal["costs", "rewards"]
    each: JsonPath | None = None
    fields: dict[str, JsonPath | Rule] = Field(min_length=1)

    def found_in(self, document: Json, defaults: Defaults) -> list[Found]:
        """Return the events of a payload. Raises Unconvertible."""
        parts = (
            [document]
            if self.each is None
            else [match.value for match in _compiled(self.each).find(document)]
        )
        if not parts:
            raise Unconvertible("each: matches nothing", Reason.MISSING_FIELD)
        return [Found(self.topic, self._fields(part, defaults)) for part in parts]

    def _fields(self, part: Json, defaults: Defaults) -> dict[str, object]:
        given: dict[str, object] = {"router_id": defaults.router_id}
        if self.topic == "rewards":
            given["source"] = defaults.source
        rules = {
            name: Rule(path=rule) if isinstance(rule, str) else rule
            for name, rule in self.fields.items()
        }
        found = {name: rule.of(part, name) for name, rule in rules.items()}
        return given | {name: value for name, value in found.items() if value is not None}


def read_mapping(path: Path) -> FieldMapping:
    """Read a mapping file.

    Raises:
        BadMapping: it is not YAML, or not a mapping.
    """
    try:
        return FieldMapping.model_validate(read_yaml(path))
    except (OSError, BadYaml) as error:
        raise BadMapping(f"{path}: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise BadMapping(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
