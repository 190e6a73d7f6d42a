"""What a wrong command line raises and says. Apart from the parser: listing commands do not load argparse."""

from collections.abc import Sequence


class UsageError(Exception):
    """The command line is wrong; the text says what and how to mend it."""


def near(word: str, known: Sequence[str]) -> str:
    """The end of an error about a word that is not known: the one that was probably meant, or nothing."""
    import difflib

    found = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {found[0]}?" if found else ""
