"""List the forms of foreign payloads, apart from what reads them, so that a command can name them
before it imports that.
"""

FORMS = ("otel", "litellm", "langfuse", "cloudevents")
"""Names of the forms, in commands and paths."""
