"""Types of JSON values, as a parser returns them and a writer takes them."""

from typing import Any, TypeAlias

Json: TypeAlias = Any
"""Any JSON value; the code that reads it checks its content."""
Document: TypeAlias = dict[str, Json]
"""A JSON object."""
