"""A session that another process has open can be read."""

from pathlib import Path

from tests.e2e.harness import Daemon, run_zutd


def test_a_session_in_use_can_be_read_but_not_prompted(tmp_path: Path) -> None:
    """``--read-only`` takes no lock, shows the messages, and refuses prompts with a way out."""
    with Daemon(tmp_path) as writer:
        writer.prompt("hello")
        path = writer.call("get_state")["session"]["path"]
        before = Path(path).read_bytes()
        with Daemon(tmp_path, "--session", path, "--read-only") as reader:
            assert len(reader.call("get_messages")["messages"]) == 2
            refused = reader.refused("prompt", message="more")
            assert refused["code"] == "conflict"
            assert "read_only" in refused["error"]
            assert reader.finish() == 0
        assert Path(path).read_bytes() == before
        writer.prompt("again")


def test_read_only_needs_a_session(tmp_path: Path) -> None:
    """There is nothing to read in a new session."""
    done = run_zutd(tmp_path, "--read-only", "-p", "x")
    assert done.returncode == 2
    assert "--read-only" in done.stderr
