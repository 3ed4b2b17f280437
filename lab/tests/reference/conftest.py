"""Tests that need the extra `reference`: `make test-reference`."""

from tests.reference.conftest import installed

__all__ = ["installed"]
