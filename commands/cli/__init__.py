"""`pbstream`: everything a person does with the service, from one command."""

from commands.cli.commands import main

__all__ = ["main"]
