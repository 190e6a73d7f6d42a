"""``zutd trust``: a project counts, is listed, and counts no longer."""

import subprocess
from pathlib import Path

from tests.e2e.harness import ZUTD, environment, run_zutd
from tests.e2e.talking import scripted, text


def test_a_project_counts_from_then_on_and_no_longer(tmp_path: Path) -> None:
    """What its AGENTS.md says reaches the model only while it is trusted; the repository is what is trusted."""
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / "src").mkdir()
    (project / "AGENTS.md").write_text("Always answer in Latin.")
    env = scripted(tmp_path, text("hi", times=0))

    def told() -> bool:
        run = run_zutd(tmp_path, "--mode", "rpc", stdin='{"type":"get_state"}\n', cwd=project / "src", env=env)
        return f'"{project}/AGENTS.md"' in run.stdout.partition('"left_out"')[0]

    assert not told()
    assert run_zutd(tmp_path, "trust", cwd=project / "src").stdout == f"{project} is trusted\n"
    assert run_zutd(tmp_path, "trust", "--list").stdout == f"{project}\n"
    assert told()
    assert run_zutd(tmp_path, "trust", str(project), "--remove").stdout == f"{project} is no longer trusted\n"
    assert run_zutd(tmp_path, "trust", "--list").stdout == ""
    assert not told()


def test_trust_in_what_is_gone_can_be_taken_back(tmp_path: Path) -> None:
    """Somebody else may make a directory of that name; but what is not there cannot be trusted."""
    gone = tmp_path / "gone"
    gone.mkdir()
    run_zutd(tmp_path, "trust", str(gone))
    gone.rmdir()
    refused = run_zutd(tmp_path, "trust", str(gone))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "not a directory" in refused.stderr
    assert run_zutd(tmp_path, "trust", str(gone), "--remove").returncode == 0
    assert run_zutd(tmp_path, "trust", "--list").stdout == ""


def test_commands_at_the_same_time_all_count(tmp_path: Path) -> None:
    """Trusting one project does not take back the trust in another, nor give back what was just taken back."""
    projects = [tmp_path / str(number) for number in range(6)]
    for project in projects:
        project.mkdir()
    run_zutd(tmp_path, "trust", str(projects[0]))
    commands = [[*ZUTD, "trust", str(project)] for project in projects[1:]] + [
        [*ZUTD, "trust", str(projects[0]), "--remove"]
    ]
    running = [subprocess.Popen(command, env=environment(tmp_path), stdout=subprocess.DEVNULL) for command in commands]
    assert [process.wait(20) for process in running] == [0] * len(running)
    assert run_zutd(tmp_path, "trust", "--list").stdout.split() == sorted(map(str, projects[1:]))
