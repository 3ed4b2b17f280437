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

Of labels the file may also say where the name of a score is (`name: $.metric`), which one is the
reward (`score: correctness`), and what identifies a label (`id: $.id`): another value of the same
id is a correction.
"""

from __future__ import annotations

import copy
import math
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from jsonpath_ng import parse
from jsonpath_ng.exceptions import JSONPathError
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from doors.integrations.payload_items import (
    Defaults,
    Found,
    Item,
    Unconvertible,
    number,
    of_score,
    rfc3339,
)
from ground.files.yaml_text import BadYaml, read_yaml
from ground.json_values import Document, Json
from schemas import Reason

THUMBS = {
    "up": 1.0,
    "down": 0.0,
    "👍": 1.0,
    "👎": 0.0,
    "true": 1.0,
    "false": 0.0,
    1.0: 1.0,
    0.0: 0.0,
    -1.0: 0.0,
}
"""Rewards of labels given as words, in lower case, or as numbers."""
THUMB_WORDS = str.maketrans("", "", ":_- \ufe0e\ufe0f")
"""Characters without a meaning in the name of a thumb, such as `:thumbs_up:`, and the selectors
that say whether an emoji has colours."""
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


def _first(path: str | None, document: Json) -> Json:
    """Return the first match, as JSONPath orders them; `each` is for payloads with many."""
    if path is None:
        return None
    return next((match.value for match in _compiled(path).find(document)), None)


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
        found = _first(self.path, document)
        return self.default if found is None else self._meant(found, name)

    def _meant(self, found: Json, name: str) -> Json:
        if self.values is not None:
            # 1.0 is 1, as JavaScript writes it, and true is JSON's.
            keys = str(found), f"{found:g}" if isinstance(found, float) else str(found).lower()
            meant = next((self.values[key] for key in keys if key in self.values), self.default)
            if meant is None:
                raise Unconvertible(f"{name}: has a value that the mapping does not name")
            return meant
        if self.thumbs:
            return _thumb(found, name)
        if self.scale is not None:
            low, high = self.scale
            return (number(found, name) - low) / (high - low)
        return rfc3339(found, name) if self.time else found


def _thumb(found: Json, name: str) -> float:
    reward = THUMBS.get(_thumb_key(found))
    if reward is None:
        raise Unconvertible(f"{name}: is neither up nor down")
    return reward


def _thumb_key(found: Json) -> str | float:
    text = str(found).strip().strip(":").lower().replace("\u2212", "-")
    try:
        if math.isfinite(key := float(text)):
            return key
    except ValueError:
        pass
    # A thumb of any colour of skin is a thumb.
    plain = "".join(one for one in text if "FITZPATRICK" not in unicodedata.name(one, ""))
    return plain.translate(THUMB_WORDS).removeprefix("thumbs").removeprefix("thumb")


class FieldMapping(BaseModel):
    """The rules of a mapping file."""

    model_config = Strict

    topic: Literal["costs", "rewards"]
    each: JsonPath | None = None
    name: JsonPath | None = None
    score: str | None = None
    id: JsonPath | None = None
    fields: dict[str, JsonPath | Rule] = Field(min_length=1)

    @model_validator(mode="after")
    def _labels_alone_have_names(self) -> Self:
        if self.topic == "costs" and (self.name, self.score, self.id) != (None, None, None):
            raise ValueError("name, score and id are of labels, topic rewards")
        if self.score is not None and self.name is None:
            raise ValueError("score chooses by name: say where that is, as in name: $.metric")
        return self

    def items_in(self, document: Document, defaults: Defaults) -> Iterator[Item]:
        """Yield the parts of a payload that `each` matches. Raises Unconvertible."""
        if self.each is None:
            yield Item(lambda: document, (lambda: self._found(document, defaults),))
            return
        matches = _compiled(self.each).find(document)
        if not matches:
            raise Unconvertible("each: matches nothing", Reason.MISSING_FIELD)
        for index, match in enumerate(matches):
            yield Item(
                partial(self._alone, document, index),
                (partial(self._found, match.value, defaults),),
            )

    def _alone(self, document: Document, index: int) -> Document:
        """Return a document without the matches of `each` but one."""
        found = copy.deepcopy(document)
        matches = list(enumerate(_compiled(self.each).find(found)))
        # From the end, as the places of a list move up.
        for other, match in reversed(matches):
            if other != index:
                match.full_path.filter(lambda _: True, found)
        return found

    def _found(self, part: Json, defaults: Defaults) -> Found:
        score = None if self.name is None else str(_first(self.name, part) or "")
        label_id = _first(self.id, part)
        with of_score(score):
            return Found(
                self.topic,
                self._fields(part, defaults),
                score=score,
                label_id=None if label_id is None else str(label_id),
            )

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
