"""The command line `pbstream`."""

from commands.cli.commands import main

__all__ = ["main"]
