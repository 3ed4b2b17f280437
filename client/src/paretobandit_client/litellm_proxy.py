"""The plugin for LiteLLM's proxy, which takes it by its name:

    router_settings:
      plugins: ["paretobandit_client.litellm_proxy.bandit"]
    litellm_settings:
      callbacks: ["paretobandit_client.litellm_proxy.bandit"]

Settings come from the environment: PB_ROUTER (`default`), PB_FALLBACK, PB_TIMEOUT (0.25 seconds);
PB_BOOTSTRAP and PB_PREFIX, or a gateway's PB_GATEWAY_URL and PB_GATEWAY_KEY.
"""

from __future__ import annotations

import os

from paretobandit_client.litellm import ParetoBandit

bandit = ParetoBandit(
    os.environ.get("PB_ROUTER", "default"),
    fallback=os.environ.get("PB_FALLBACK") or None,
    url=os.environ.get("PB_GATEWAY_URL") or None,
    key=os.environ.get("PB_GATEWAY_KEY") or None,
    timeout=float(os.environ.get("PB_TIMEOUT", "0.25")),
)
