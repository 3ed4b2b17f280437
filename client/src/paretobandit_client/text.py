"""Text that is not valid Unicode: half of a character, as of an emoji that was cut in the middle,
or bytes of a command line that are not UTF-8.
"""

from __future__ import annotations


def is_valid(text: str) -> bool:
    """Tell whether a text is valid Unicode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def mended(text: str) -> str:
    """Return a text with U+FFFD in place of what is not valid Unicode. Halves that belong together
    become their character.
    """
    if is_valid(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
