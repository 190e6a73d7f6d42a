"""What a wrong command line raises. Apart from the parser: listing commands do not load argparse."""


class UsageError(Exception):
    """The command line is wrong; the text says what and how to mend it."""
