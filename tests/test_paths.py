"""Where things are kept: the rules of the extension documents, on each system."""

import os

import pytest

from zutd.paths import extension_log, zot_home, zut_home

LINUX = {"HOME": "/home/me"}


@pytest.mark.parametrize(
    ("platform", "environ", "home"),
    [
        ("linux", LINUX, "/home/me/.local/state/zut"),
        ("darwin", LINUX, "/home/me/Library/Application Support/zut"),
        ("win32", {"LOCALAPPDATA": "/local", **LINUX}, "/local/zut"),
        ("linux", {"XDG_STATE_HOME": "/state", **LINUX}, "/state/zut"),
        ("darwin", {"XDG_STATE_HOME": "/state", **LINUX}, "/state/zut"),
        ("win32", {"XDG_STATE_HOME": "/state", "LOCALAPPDATA": "/local", **LINUX}, "/state/zut"),
        ("linux", {"ZUT_HOME": "/mine", "XDG_STATE_HOME": "/state", **LINUX}, "/mine"),
        ("linux", {"ZUT_HOME": "", "XDG_STATE_HOME": "", **LINUX}, "/home/me/.local/state/zut"),
    ],
)
def test_the_home_directory(monkeypatch: pytest.MonkeyPatch, platform: str, environ: dict[str, str], home: str) -> None:
    """``ZUT_HOME``, else ``XDG_STATE_HOME`` on every system, else the system's own place; zot's by the same rule."""
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setenv("HOME", "/home/me")
    assert zut_home(environ) == home
    if "ZUT_HOME" not in environ or not environ["ZUT_HOME"]:
        assert zot_home(environ) == home.replace("zut", "zot")
    assert zot_home({**environ, "ZOT_HOME": "/theirs"}) == "/theirs"


def test_paths_are_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative home is one of the directory in which zutd was started, whatever becomes of that."""
    monkeypatch.chdir("/")
    assert zut_home({"ZUT_HOME": "here"}) == os.path.abspath("/here")
    assert extension_log("/home", "it") == "/home/logs/ext-it.log"
