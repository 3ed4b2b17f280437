"""`pbstream dashboard`: one page in the browser, live."""

from __future__ import annotations

import click

from doors.console.session import Session, pass_session, port_option


@click.command()
@click.option(
    "--admin",
    is_flag=True,
    help="Let operators with a key change budgets, prices and models from the page.",
)
@click.option(
    "--labels",
    is_flag=True,
    help="Let whoever may look at a router label its answers, on the page Inbox.",
)
@click.option("--open", "opens", is_flag=True, help="Open the page in this machine's browser.")
@port_option("PB_DASHBOARD_PORT", 8070)
@pass_session
def dashboard(session: Session, admin: bool, labels: bool, opens: bool, port: int | None) -> None:
    """Serve a live page of all routers and their decisions, until SIGTERM or Ctrl-C.

    It reads the topics, and nothing else; with --admin it changes routers, and with --labels it
    writes labels. It listens on loopback (PB_DASHBOARD_BIND). To be reached
    from elsewhere it needs API keys: PB_DASHBOARD_KEYS, or the file that PB_DASHBOARD_KEYS_FILE
    names, as `pbstream gateway --new-key` prints them.

    \b
      pbstream dashboard --open
      pbstream dashboard --admin --port 18070
      pbstream dashboard --labels
    """
    from streams.service.logs import announce, log_to_stderr
    from watching.dashboard.serve_dashboard import server_of, sessions_of

    settings = session.with_port("dashboard_port", port)
    sessions, key = sessions_of(settings, admin=admin, labels=labels)
    server = server_of(settings, sessions)
    log_to_stderr("info", settings.log_format)

    def listening(where: str) -> None:
        announce(
            f"Dashboard of {settings.prefix}* on {settings.bootstrap}: {where}/",
            settings.log_format,
        )
        if key is not None:
            announce(f"Operator's key for this run, to change routers: {key}", settings.log_format)
        # Only now: before the server listens, the browser would show an error.
        if opens:
            click.launch(f"{where}/")

    server.when_started = listening
    if not server.run_until_stopped():
        raise click.exceptions.Exit(1)
