"""The plugin for LiteLLM's proxy, which takes it by its name:

    router_settings:
      plugins: ["paretobandit_client.litellm_proxy.bandit"]
    litellm_settings:
      callbacks: ["paretobandit_client.litellm_proxy.bandit"]

Settings come from the environment: PB_ROUTER (`default`), PB_FALLBACK, PB_TIMEOUT (0.25 seconds);
PB_BOOTSTRAP and PB_PREFIX, or a gateway's PB_GATEWAY_URL and PB_GATEWAY_KEY; PB_VERIFIERS, which
says where callables are, as in `json=paretobandit_client.is_json, mine=my_module.check`.
"""

from __future__ import annotations

import os
from importlib import import_module

from paretobandit_client.litellm import ParetoBandit
from paretobandit_client.verifying import Verify


def named(said: str) -> dict[str, Verify]:
    """Return the verifiers of PB_VERIFIERS. Raises ValueError for a name without a callable.

    >>> list(named("json=paretobandit_client.is_json, some = paretobandit_client.non_empty"))
    ['json', 'some']
    """
    found: dict[str, Verify] = {}
    for part in filter(None, map(str.strip, said.split(","))):
        name, _, place = part.partition("=")
        module, _, attribute = place.strip().rpartition(".")
        try:
            found[name.strip()] = getattr(import_module(module), attribute)
        except (AttributeError, ImportError, ValueError) as error:
            raise ValueError(
                f"PB_VERIFIERS: {part!r} is not NAME=MODULE.CALLABLE: {error}"
            ) from error
    return found


bandit = ParetoBandit(
    os.environ.get("PB_ROUTER", "default"),
    fallback=os.environ.get("PB_FALLBACK") or None,
    url=os.environ.get("PB_GATEWAY_URL") or None,
    key=os.environ.get("PB_GATEWAY_KEY") or None,
    timeout=float(os.environ.get("PB_TIMEOUT", "0.25")),
    verifiers=named(os.environ.get("PB_VERIFIERS", "")),
)
