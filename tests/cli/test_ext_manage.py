"""What a long installation tells whoever waits for it."""

import pytest

from zutd.cli.ext_manage import _Progress


class Impatient(_Progress):
    """Says at once what others say after a second."""

    FIRST = 0.0


def test_a_long_copy_says_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """In a pipe it is a line now and then; nothing is said before a second has gone by, nothing is left to wipe."""
    patient, impatient = _Progress(), Impatient()
    for files in range(1000):
        patient(files, files * 1000)
        impatient(files, files * 1_000_000)
    impatient.wipe()
    assert capsys.readouterr().err == "zutd: copied 0 files, 0.0 MB ...\n"


def test_on_a_terminal_it_is_one_line_that_goes_away(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written over and wiped in the end."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    progress = Impatient()
    progress(7, 2_500_000)
    progress.wipe()
    assert capsys.readouterr().err == "\rzutd: copied 7 files, 2.5 MB ...\r\x1b[K"
