"""Tell the origin of a request: a program, a page of this server, or a browser's page of another
site.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from starlette.requests import Request

from doors.gateway.problems import Problem

OWN_PAGES = ("same-origin", "none")
"""Values of `Sec-Fetch-Site` for requests of a page of this server and for a typed address (Fetch
Metadata, 2.4)."""


def is_loopback(address: str) -> bool:
    """Tell whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return address == "localhost"


def from_this_machine(request: Request, *, keys: str) -> None:
    """Refuse requests from pages of other sites, and from pages whose name was made to resolve to
    this machine (DNS rebinding).

    Args:
        keys: name of the setting for keys, to be named in the refusal.

    Raises:
        Problem: the request has another host, or comes from another site.
    """
    if not is_loopback(_name(request.headers.get("host", ""))) or of_another_site(request):
        raise Problem(
            "forbidden",
            "without keys only programs on this machine may ask, at 127.0.0.1 or localhost: "
            f"`pbstream gateway --new-key NAME` makes a key, {keys} names the list",
        )


def of_another_site(request: Request) -> bool:
    """Tell whether a browser says that a page of another origin sent this."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        return site not in OWN_PAGES
    # Older browsers send the origin alone; programs send neither.
    return origin is not None and urlsplit(origin).netloc != request.headers.get("host")


def _name(host: str) -> str:
    return host if host.endswith("]") else host.rsplit(":", 1)[0]
