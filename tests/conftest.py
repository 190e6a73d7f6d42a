"""What all tests have in common."""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Shells start jobs in the background so, and whoever we start would inherit it: many tests send that signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)
