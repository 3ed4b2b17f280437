"""A group of commands that names the command which was meant."""

from __future__ import annotations

import difflib

import click


class Suggesting(click.Group):
    """A group that answers an unknown command with the nearest one, or with all that there are."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of these arguments. Raises UsageError: there is no such command."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            known = self.list_commands(ctx)
            close = difflib.get_close_matches(args[0], known, n=1)
            error.message += (
                f" Did you mean {close[0]}?" if close else f" There are {', '.join(known)}."
            )
            raise
