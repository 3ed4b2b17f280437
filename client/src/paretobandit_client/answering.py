"""Tell which providers name in their answers the model that answered.

Other answers name a deployment, a route or the name in the request, and so hide a redirect: those
of Azure's deployments, of gateways before several providers, and of one's own servers.
"""

from __future__ import annotations

NAMING = frozenset(
    {
        "anthropic",
        "cohere",
        "cohere_chat",
        "deepseek",
        "gcp.gemini",
        "gcp.gen_ai",
        "gcp.vertex_ai",
        "gemini",
        "google",
        "groq",
        "mistral",
        "mistral_ai",
        "openai",
        "vertex_ai",
        "x_ai",
        "xai",
    }
)
"""Providers by the names of LiteLLM and of OpenTelemetry's conventions."""
OPENAI = "openai.com"
"""Host of OpenAI itself: many servers speak its language, and name models as they please."""


def names_itself(provider: object, host: object = None) -> bool:
    """Tell whether an answer of this provider names the model that answered.

    Args:
        host: address or name at which the provider was called; None: not known.

    >>> names_itself("openai"), names_itself("azure"), names_itself("openai", "http://vllm:8000")
    (True, False, False)
    """
    name = str(provider or "").lower()
    if name not in NAMING:
        return False
    return name != "openai" or not host or OPENAI in str(host)
