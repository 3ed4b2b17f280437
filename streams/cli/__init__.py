"""`pbstream`: everything a person does with the service, from one command."""

from streams.cli.commands import main

__all__ = ["main"]
