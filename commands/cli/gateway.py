"""`pbstream gateway`: serve decisions, bills and rewards over HTTP."""

from __future__ import annotations

import click

from doors.console.session import Session, pass_session, port_option


@click.command()
@click.option(
    "--new-key",
    metavar="NAME",
    help="Print a new API key and its line for the list of keys, and end.",
)
@click.option(
    "--routers",
    default="*",
    show_default=True,
    metavar="PATTERNS",
    help="With --new-key: patterns of the routers that the key may use.",
)
@port_option("PB_GATEWAY_PORT", 8090)
@pass_session
def gateway(session: Session, new_key: str | None, routers: str, port: int | None) -> None:
    """Answer HTTP: decisions, bills and rewards under /v1/routers/ID, until SIGTERM or Ctrl-C.

    The gateway listens on loopback (PB_GATEWAY_BIND). To listen elsewhere it needs API keys:
    a list of lines `NAME sha256:HEX ROUTERS` in PB_GATEWAY_KEYS, or in the file that
    PB_GATEWAY_KEYS_FILE names.

    \b
      pbstream gateway --port 18090
      pbstream gateway --new-key judge --routers "acme.*,chat"

    Its API is described at http://127.0.0.1:8090/openapi.json. /readyz tells whether the gateway
    is ready, and /metrics has its metrics.
    """
    if new_key is not None:
        _print_key(new_key, routers)
        return
    from doors.gateway.serve import server_of
    from streams.service.logs import announce, log_to_stderr

    server = server_of(session.with_port("gateway_port", port))
    log_to_stderr("info", session.settings.log_format)
    server.when_started = lambda where: announce(
        f"Gateway to {session.settings.bootstrap} on {where}; {where}/openapi.json describes it.",
        session.settings.log_format,
    )
    if not server.run_until_stopped():
        raise click.exceptions.Exit(1)


def _print_key(name: str, routers: str) -> None:
    from doors.gateway.api_keys import BadKeys, new_key

    try:
        key, line = new_key(name, routers=routers)
    except BadKeys as error:
        raise click.BadParameter(str(error), param_hint="--new-key, --routers") from error
    # The key goes to stderr and its line to stdout: `>> keys` then stores the hash, not the secret.
    click.echo(f"Give this to the caller; it is shown once:\n{key}", err=True)
    click.echo(line)
