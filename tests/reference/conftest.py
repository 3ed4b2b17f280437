"""Tests of torch, sentence-transformers and the export to ONNX: `make test-reference`, as in CI.

They need five gigabytes that nothing else needs, so `make test` leaves them out.
"""

from importlib.util import find_spec

import pytest


@pytest.fixture(scope="session", autouse=True)
def installed() -> None:
    """Fail with what to type where the extra `reference` is missing."""
    absent = [name for name in ("torch", "sentence_transformers", "onnx") if not find_spec(name)]
    if absent:
        pytest.fail(f"{', '.join(absent)} missing: tools/setup reference", pytrace=False)
