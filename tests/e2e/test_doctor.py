"""``zutd ext doctor`` calls well only what is well."""

from pathlib import Path

import pytest

from tests.e2e.harness import PYTHON_HEAD, run_zutd, write_extension

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def test_an_extension_that_ends_by_itself_is_in_error(tmp_path: Path) -> None:
    """Shaking hands is not enough: who exits instead of serving is in error, and the exit code is 1."""
    path = write_extension(tmp_path / "ext", "brief", PYTHON_HEAD + 'hello("brief")\nsys.exit(3)\n')

    done = run_zutd(tmp_path, "ext", "doctor", "--ext", str(path))

    assert done.returncode == 1, done.stdout
    first, *details = done.stdout.splitlines()
    assert first.startswith("brief [explicit] error")
    assert "    error: extension exited: exit status 3" in details
