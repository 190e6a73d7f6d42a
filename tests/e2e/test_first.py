"""The daemon runs a conversation."""

from pathlib import Path

from tests.e2e.harness import Daemon


def test_a_prompt_ends_in_one_done(tmp_path: Path) -> None:
    """A prompt over typed lines is answered, streamed, and ends in exactly one ``done``."""
    with Daemon(tmp_path) as daemon:
        frames = daemon.prompt("hello")

        assert [f["type"] for f in frames].count("done") == 1
        assert daemon.finish() == 0
