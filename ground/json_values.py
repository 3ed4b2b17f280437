"""JSON, as a parser returns it and a writer takes it."""

from typing import Any, TypeAlias

Json: TypeAlias = Any
"""Any JSON value: what is in it is looked at where it is read."""
Document: TypeAlias = dict[str, Json]
"""A JSON object."""
