"""Where zutd keeps things. Imports next to nothing, so that listing commands start at once."""

import os
import sys
from collections.abc import Mapping


def zut_home(environ: Mapping[str, str]) -> str:
    """The absolute home directory: ``ZUT_HOME``, else ``XDG_STATE_HOME/zut`` on any system, else the system's own.

    The rule is the extension documents' ("Layout & discovery"); with no home directory at all it is ``./.zut``.
    """
    if environ.get("ZUT_HOME"):
        return os.path.abspath(environ["ZUT_HOME"])
    if environ.get("XDG_STATE_HOME"):
        return os.path.join(os.path.abspath(environ["XDG_STATE_HOME"]), "zut")
    if sys.platform == "win32" and environ.get("LOCALAPPDATA"):
        return os.path.join(environ["LOCALAPPDATA"], "zut")
    home = os.path.expanduser("~")
    if home in ("", "~", "/") and not environ.get("HOME"):
        return os.path.abspath(".zut")
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Application Support", "zut")
    return os.path.join(home, ".local", "state", "zut")


def zot_home(environ: Mapping[str, str]) -> str:
    """The home directory of zot, by its own rule, which is zut's with another name."""
    if environ.get("ZOT_HOME"):
        return os.path.abspath(environ["ZOT_HOME"])
    ours = zut_home({name: value for name, value in environ.items() if name != "ZUT_HOME"})
    return os.path.join(os.path.dirname(ours), os.path.basename(ours).replace("zut", "zot"))


def extension_log(home: str, name: str) -> str:
    """The file that takes an extension's stderr."""
    return os.path.join(home, "logs", f"ext-{name}.log")
