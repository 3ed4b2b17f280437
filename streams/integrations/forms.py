"""Which payloads of others are understood; by itself, so that a command can name them before it
imports what reads them."""

FORMS = ("otel", "litellm", "langfuse", "cloudevents")
"""Names of the forms, in commands and paths."""
