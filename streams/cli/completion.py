"""`pbstream completion`: let a shell complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

SHELLS: dict[str, type[ShellComplete]] = {
    "bash": BashComplete,
    "zsh": ZshComplete,
    "fish": FishComplete,
}


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print what lets a shell complete these commands and their options.

    \b
      pbstream completion bash >> ~/.bashrc
      pbstream completion zsh >> ~/.zshrc
      pbstream completion fish > ~/.config/fish/completions/pbstream.fish
    """
    found = SHELLS[shell](ctx.find_root().command, {}, "pbstream", "_PBSTREAM_COMPLETE")
    # Not `source`: it starts a bash only to ask for its version.
    click.echo(found.source_template % found.source_vars())
