"""What a message to users never has: names of types, error numbers, and marks of libraries."""

import re

_WORDS = re.compile(
    r"""\b[A-Za-z]+(?:Error|Exception)\b   # a type, in whatever case
    | [Ee]rrno | \berror: | \([0-9]+\) | \b0x[0-9a-f]+ | (?:\bcode|\berror)\ [0-9]
    | \bipv[46]:[0-9\[%] | UNKNOWN: | UNAVAILABLE: | \b(?:TSI|SSL|OPENSSL|BIO|PEM)_ | \[(?:SSL|X509)
    | StatusCode | GOAWAY | RST_STREAM | recvmsg
    | \bcodec\b | \bcan't\ (?:encode|decode) | \bbyte\ 0x | \bpickle | \bzip(?:file)?\ file\b
    | \bnp\. | numpy\.core | char\ [0-9] | \bdelimiter | object\ at | Traceback""",
    re.X,
)


def assert_own_words(message: str) -> None:
    """Refuses a message with the words of a library."""
    found = _WORDS.search(message)
    assert found is None, f"{found and found[0]!r} in: {message}"
    assert message.strip()
