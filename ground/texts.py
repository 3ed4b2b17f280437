"""Text that is not valid Unicode: half of a character, as of an emoji that was cut in the middle,
or bytes of a command line that are not UTF-8.

What people wrote, such as a prompt, is mended and goes on. What identifies something is refused:
two ids could become one.
"""

from __future__ import annotations

NOT_UNICODE = "is not valid Unicode: it holds half of a character, or bytes that are not UTF-8"
"""Fault of an id or a name."""


def is_valid(text: str) -> bool:
    """Tell whether a text is valid Unicode.

    >>> is_valid("caf\\u00e9"), is_valid("cut \\ud83d")
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def mended(text: str) -> str:
    """Return a text with U+FFFD in place of what is not valid Unicode. Halves that belong together
    become their character.

    >>> mended("cut \\ud83d"), mended("\\ud83d\\ude00")
    ('cut \ufffd', '\U0001f600')
    """
    if is_valid(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
