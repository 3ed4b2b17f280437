"""LiteLLM for the tests that use it: its import is seconds of work, which collection saves."""

from __future__ import annotations

import os
import warnings
from typing import Any

import pytest

# What the tests start inherits it: LiteLLM looks nothing up in the network.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
os.environ["LITELLM_OFFLINE_MODE"] = "true"


@pytest.fixture(scope="session")
def litellm() -> Any:
    """Import LiteLLM, whose import warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import litellm

    return litellm
