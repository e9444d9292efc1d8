"""The token of a client."""

from typing import Any

from hlorank.errors import ArgumentError


def authorization(token: str | None) -> tuple[tuple[str, str], ...]:
    """Returns the header with a token, without the white space around it; none for None.

    Files, variables and secrets hold a token with the end of its line. The message of an error
    does not contain the token.

    Raises:
        ArgumentError: if it is no text, is empty, or cannot be sent in a header.
    """
    if token is None:
        return ()
    return (("authorization", f"Bearer {_checked(token)}"),)


def _checked(token: Any) -> str:
    if isinstance(token, bytes | bytearray):
        raise ArgumentError("the token is bytes, expected text: pass token.decode()")
    if not isinstance(token, str):
        raise ArgumentError(f"the token is a {type(token).__name__}, expected text or None")
    stripped = token.strip()
    if not stripped:
        raise ArgumentError("the token is empty: pass None to send none")
    for place, letter in enumerate(stripped):
        if not " " <= letter <= "~":
            raise ArgumentError(
                f"the token cannot be sent: its character {place + 1} is {letter!r}, expected one "
                "line of printable ASCII characters"
            )
    return stripped
