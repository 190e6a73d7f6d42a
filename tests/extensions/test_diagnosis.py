"""What is kept about an extension is bounded, and so is what is told."""

from pathlib import Path

from zutd.extensions.diagnosis import TOLD_AT_FIRST, WARNING_BYTES, WARNINGS, Diagnosis, explain
from zutd.extensions.manifest import Found, Manifest

FOUND = Found("/x/ext", "global", "ok", Manifest(name="ext", exec="./ext.py", language="python"))


def test_warnings_are_bounded() -> None:
    """The newest hundred stay, each of at most 2 KiB."""
    diagnosis = Diagnosis(["from the manifest"])
    assert list(diagnosis.warnings) == ["from the manifest"]

    for n in range(300):
        diagnosis.warn(f"{n} " + "x" * 5000)

    assert len(diagnosis.warnings) == WARNINGS
    assert diagnosis.warnings[-1].startswith("299 ")
    assert max(map(len, diagnosis.warnings)) <= WARNING_BYTES + len(" ...")


def test_bad_lines_are_told_a_few_times() -> None:
    """The first ones each, then only powers of ten, with the count; the log grows no more than that."""
    diagnosis = Diagnosis([])

    told = [text for n in range(1, 100_001) if (text := diagnosis.problem(f"bad line {n}"))]

    assert told[:TOLD_AT_FIRST] == [f"bad line {n}" for n in range(1, TOLD_AT_FIRST + 1)]
    assert told[TOLD_AT_FIRST:] == [
        f"bad line {n}; {n} lines so far could not be used" for n in (100, 1000, 10_000, 100_000)
    ]
    assert list(diagnosis.warnings) == told


def test_notes_go_to_the_log(tmp_path: Path) -> None:
    """Warnings stand in the log, marked as the host's own; without a log nothing breaks."""
    diagnosis = Diagnosis([])
    diagnosis.warn("too early for the log")
    log = diagnosis.open_log(str(tmp_path / "logs" / "ext-a.log"))
    diagnosis.warn("two\nlines")
    log.stderr(b"its own\n")
    diagnosis.close_log()
    diagnosis.warn("too late for the log")

    assert (tmp_path / "logs" / "ext-a.log").read_text() == "[zutd] two\n[zutd] lines\nits own\n"
    assert diagnosis.last_stderr == ("its own",)


def test_errors_say_everything_once() -> None:
    """Program, language, reason, directory (once) and log, each on its line."""
    assert explain(FOUND, "failed to start", "it broke", "/x/log").splitlines() == [
        "Extension ext failed to start.",
        "",
        "  exec: ./ext.py (python)",
        "  error: it broke",
        "  directory: /x/ext",
        "  stderr log: /x/log",
    ]
    assert "log" not in explain(FOUND, "failed to start", "it broke", "")
