"""Tell whether two names are of one model: providers answer by the dated snapshot of a name, and
platforms put their own and the provider's name before it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_VENDOR = re.compile(
    r"^(?:[a-z]{2,6}\.)?(?:ai21|amazon|anthropic|cohere|deepseek|meta|mistral|openai|qwen)\."
)
"""Pattern of a region and a vendor before a name, as Bedrock writes them."""
_VERSION = re.compile(r"-v\d+(?::\d+)?$")
"""Pattern of a version behind a name, as Bedrock writes it."""
_SNAPSHOT = re.compile(
    r"[-@:._](latest|\d{4}-\d{2}-\d{2}|\d{8}|\d{2}-\d{4}|\d{2}-\d{2}|\d{6}|\d{4}|0\d{2})$"
)
"""Pattern of a snapshot behind a name: the state of its weights on a day, or the latest one."""


class Name(NamedTuple):
    """A model's name without its snapshot, and the snapshot; None: the name has none."""

    stem: str
    snapshot: str | None


@lru_cache(1024)
def parts_of(name: str) -> Name:
    """Split a name.

    >>> parts_of("openai/gpt-4o-2024-08-06")
    Name(stem='gpt-4o', snapshot='20240806')
    """
    bare = _VENDOR.sub("", name.strip().lower().rpartition("/")[2])
    bare = _VERSION.sub("", bare)
    found = _SNAPSHOT.search(bare)
    if found is None or found.start() == 0:
        return Name(bare, None)
    return Name(bare[: found.start()], found[1].replace("-", ""))


def is_same_model(called: str, answered: str) -> bool:
    """Tell whether two names are of one model. Two dated snapshots are two models. A name without a
    snapshot, or with the snapshot `latest`, fits every snapshot of its model.

    >>> is_same_model("gpt-4o", "gpt-4o-2024-08-06"), is_same_model("gpt-4o", "gpt-4o-mini")
    (True, False)
    """
    one, other = parts_of(called), parts_of(answered)
    if one.stem != other.stem:
        return False
    snapshots = {one.snapshot, other.snapshot}
    return len(snapshots) == 1 or None in snapshots or "latest" in snapshots
