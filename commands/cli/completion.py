"""`pbstream completion`: let a shell complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

SHELLS: dict[str, type[ShellComplete]] = {
    "bash": BashComplete,
    "zsh": ZshComplete,
    "fish": FishComplete,
}
"""Click's completion class for each shell."""
ZSH_READY = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }"
"""Line of zsh that runs `compinit` where it has not run yet: without it there is no `compdef` to
register with."""


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script with which a shell completes these commands and their options.

    \b
      pbstream completion bash >> ~/.bashrc
      pbstream completion zsh >> ~/.zshrc
      pbstream completion fish > ~/.config/fish/completions/pbstream.fish
    """
    found = SHELLS[shell](ctx.find_root().command, {}, "pbstream", "_PBSTREAM_COMPLETE")
    # Not `source`: it starts a bash only to ask for its version.
    script = found.source_template % found.source_vars()
    # After the first line, which must stay the first: zsh reads `#compdef` there.
    if shell == "zsh":
        head, _, rest = script.lstrip().partition("\n")
        script = f"{head}\n{ZSH_READY}\n{rest}"
    click.echo(script)
