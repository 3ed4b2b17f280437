"""Names of the known forms of payloads, apart from their readers, which are slow to import."""

FORMS = ("otel", "litellm", "langfuse", "cloudevents")
"""Names of the forms, as commands and paths use them."""
