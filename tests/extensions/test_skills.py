"""Skills: where they are looked for, which of a name counts, what a SKILL.md says. Names as in B1-B5 and M7-M9."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zutd.extensions.skills import Skills, expanded, find_skills, manifest_text, parse, read_skill, user_roots


def put(directory: Path, *, says: str = "body", name: str = "", description: str = "what it is for") -> Path:
    """Write a skill; its path."""
    directory.mkdir(parents=True, exist_ok=True)
    front = [f"name: {name}"] if name else []
    text = "\n".join(["---", *front, f"description: {description}", "---", says, ""])
    (directory / "SKILL.md").write_text(text)
    return directory


def bundle(extension: Path, *entries: str) -> Skills:
    """The skills that an extension bundles with these entries in its manifest."""
    return find_skills((), [(extension.name, str(extension), entries)])


def found(skills: Skills) -> dict[str, tuple[str, str]]:
    """Source and text of each skill."""
    return {name: (skill.source, skill.body) for name, skill in skills.by_name.items()}


# --- which of a name counts ------------------------------------------------------------------------------------------


def test_b1_the_users_skill_wins_then_the_first_extensions(tmp_path: Path) -> None:
    """Roots before extensions, roots in their order, extensions by name, whatever the order in which they came."""
    for place in ("first", "second", "b-ext", "a-ext"):
        for name in ("everywhere", *(["extensions"] if "ext" in place else ["roots"])):
            put(tmp_path / place / name, says=place)
    roots = [("project", str(tmp_path / "first")), ("user", str(tmp_path / "second"))]
    bundles = [(name, str(tmp_path / name), ("everywhere", "extensions")) for name in ("b-ext", "a-ext")]

    assert found(find_skills(roots, bundles)) == {
        "everywhere": ("project", "first"),
        "extensions": ("extension a-ext", "a-ext"),
        "roots": ("project", "first"),
    }


def test_b1_within_one_extension_the_first_declaration_stands(tmp_path: Path) -> None:
    """Two entries with a skill of one name: the manifest's order decides, and the list is sorted by name."""
    put(tmp_path / "ext" / "one", says="one", name="twice")
    put(tmp_path / "ext" / "two", says="two", name="twice")
    put(tmp_path / "ext" / "three", name="again")

    skills = bundle(tmp_path / "ext", "two", "one", "three")

    assert (list(skills.by_name), skills.by_name["twice"].body) == (["again", "twice"], "two")


def test_b2_a_directory_with_a_skill_of_its_own_is_that_skill(tmp_path: Path) -> None:
    """Named directly, without a name inside it has the directory's; what lies below it is not looked at."""
    put(tmp_path / "ext" / "review")
    put(tmp_path / "ext" / "review" / "inner", name="never")

    assert list(bundle(tmp_path / "ext", "review").by_name) == ["review"]
    assert list(find_skills([("user", str(tmp_path / "ext"))]).by_name) == ["review"]


def test_m7_a_directory_of_skills_gives_each_of_its_children(tmp_path: Path) -> None:
    """An entry without a SKILL.md of its own stands for its direct children that have one; the others are silent."""
    put(tmp_path / "bundle" / "skills" / "phases", name="phases")
    put(tmp_path / "bundle" / "skills" / "plans")
    put(tmp_path / "bundle" / "skills" / "deeper" / "hidden")
    (tmp_path / "bundle" / "skills" / "notes.txt").write_text("no skill")

    skills = bundle(tmp_path / "bundle", "  skills/ ", "not-there")

    assert found(skills) == dict.fromkeys(("phases", "plans"), ("extension bundle", "body"))
    assert skills.problems == ()


@pytest.mark.parametrize(
    "entry", ["", "  ", ".", "./", "..", "../outside", "a/../../outside", "/", "/etc", "skills/.."]
)
def test_m8_entries_that_are_no_directory_inside_are_refused(tmp_path: Path, entry: str) -> None:
    """Empty, absolute, the extension itself and whatever leads out of it: a sentence, and no skill."""
    put(tmp_path / "outside")
    put(tmp_path / "ext")
    (tmp_path / "ext" / "skills").mkdir()

    skills = bundle(tmp_path / "ext", entry)

    assert skills.by_name == {}
    (problem,) = skills.problems
    assert problem.startswith("skill: extension ext: the path ")


@pytest.mark.parametrize("link", ["skills/evil/SKILL.md", "skills/evil", "skills", "direct/SKILL.md"])
def test_m9_b3_a_skill_that_lies_outside_is_refused(tmp_path: Path, link: str) -> None:
    """Neither a linked file nor a linked directory leads out of the extension, at any level."""
    put(tmp_path / "outside" / "evil")
    extension = tmp_path / "ext"
    path = extension / link
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path / "outside" / ("evil/SKILL.md" if path.name == "SKILL.md" else "evil"))

    skills = bundle(extension, Path(link).parts[0])

    assert skills.by_name == {}
    assert len(skills.problems) == 1
    assert "leaves the extension's directory" in skills.problems[0]


def test_m9_one_that_is_refused_takes_no_other_away(tmp_path: Path) -> None:
    """Beside a skill that leads outside, and one without a description, the good ones of the entry count."""
    put(tmp_path / "outside")
    skills = tmp_path / "ext" / "skills"
    for name in ("a-good", "z-good"):
        put(skills / name)
    put(skills / "inner-target")
    (skills / "inner-link").symlink_to("inner-target")
    (skills / "m-evil").symlink_to(tmp_path / "outside")
    put(skills / "n-bare", description="")

    loaded = bundle(tmp_path / "ext", "skills")

    assert list(loaded.by_name) == ["a-good", "inner-link", "inner-target", "z-good"]
    assert ["m-evil" in p or "n-bare" in p for p in loaded.problems] == [True, True]


def test_b4_bundles_alone_bring_nobody_elses_skills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an extension bundles is what it bundles: the user's skills come from the roots, and there are no others."""
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    put(tmp_path / "person" / ".claude" / "skills" / "mine")
    put(tmp_path / "ext" / "theirs")
    roots = user_roots(str(tmp_path), str(tmp_path / "home"), {}, trusted=True)

    assert list(bundle(tmp_path / "ext", "theirs").by_name) == ["theirs"]
    assert list(find_skills(roots).by_name) == ["mine"]


def test_a_projects_skills_count_when_the_project_is_trusted() -> None:
    """The order of the roots, the environment first; without consent none of the project's is among them."""
    environ = {"ZUT_AGENT_SKILLS": "/env/a:/env/b"}
    places = [source for source, _ in user_roots("/p", "/h", environ, trusted=True)]
    untrusted = user_roots("/p", "/h", environ, trusted=False)

    assert places == ["environment", "environment", *["project", "user"] * 3]
    assert [source for source, _ in untrusted] == ["environment", "environment", "user", "user", "user"]
    assert untrusted[2] == ("user", "/h/skills")


# --- what a SKILL.md says --------------------------------------------------------------------------------------------

FULL = """---
name: "deploy: it"
description: 'Deploys what it''s given: safely'
disable-model-invocation: true
allowed-tools:
  - read
  - bash
permissions:
  network: none
tags: [one, two]
# a comment: nothing
---

First line.
---
Last line.
"""


def test_b5_front_matter(tmp_path: Path) -> None:
    """Quotes, colons, lists and maps of values; what is not known is passed over; the body is the rest."""
    (tmp_path / "SKILL.md").write_text("\ufeff" + FULL.replace("\n", "\r\n"))

    skill = read_skill(str(tmp_path), "user")

    assert (skill.name, skill.description) == ("deploy: it", "Deploys what it's given: safely")
    assert (skill.hidden, skill.body) == (True, "First line.\n---\nLast line.")
    assert (skill.allowed_tools, skill.permissions) == ("read, bash", "network: none")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("allowed-tools: read, bash", "read, bash"),
        ("allowed-tools: [read, 'bash']", "read, bash"),
        ("allowed-tools:\n- read\n- bash: all", "read, bash: all"),
        ("allowed-tools:\n    - read\n\n    - bash", "read, bash"),
        ("allowed-tools: []", ""),
        ("allowed-tools:", ""),
    ],
)
def test_b5_lists_in_every_spelling(tmp_path: Path, written: str, shown: str) -> None:
    """A list in one line, in brackets, or an item a line, indented or not, is the same list."""
    (tmp_path / "SKILL.md").write_text(f"---\n{written}\ndescription: d\n---\nx")

    skill = read_skill(str(tmp_path), "user")

    assert (skill.allowed_tools, skill.description) == (shown, "d")


@pytest.mark.parametrize(
    "written",
    [">\n  one\n  - two: three", "|-\n  one\n  - two: three", "one\n  - two: three", "\n  one\n  - two: three"],
)
def test_b5_a_text_of_several_lines_is_one(written: str) -> None:
    """Folded, kept or plain: the lines of a text are joined as they are."""
    assert parse(f"---\ndescription: {written}\nname: x\n---\n")[0] == {"description": "one - two: three", "name": "x"}


@pytest.mark.parametrize(
    "text", ["", "no front matter", "---\nname: never closed\n", "\n---\nname: late\n---\n", "--- x\nname: x\n---\n"]
)
def test_b5_malformed_front_matter_is_none(text: str) -> None:
    """Without an opening and a closing line it is all body."""
    assert parse(text) == ({}, text)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=12))
def test_b5_any_text_can_be_read(lines: Sequence[str]) -> None:
    """Whatever stands in a file, reading it gives fields that are text, and never more text than there was."""
    text = "---\n" + "\n".join(lines)
    fields, body = parse(text)

    assert text.replace("\r\n", "\n").endswith(body) or body == text
    assert all(key and isinstance(value, str) for key, value in fields.items())


# --- what the model is told ------------------------------------------------------------------------------------------


def test_the_model_is_told_of_skills_that_are_not_hidden(tmp_path: Path) -> None:
    """One line each with name, place and description; a hidden one can still be asked for by name."""
    put(tmp_path / "shown", description="for all")
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "SKILL.md").write_text(FULL)
    skills = find_skills([("user", str(tmp_path))])

    assert manifest_text(skills).splitlines()[1:] == [f"- shown ({tmp_path}/shown): for all"]
    assert "deploy: it" in skills.by_name
    assert manifest_text(Skills(by_name={})) == ""


def test_a_skill_as_a_message_carries_its_arguments(tmp_path: Path) -> None:
    """Body, directory, what it may use, and the arguments when there are any."""
    (tmp_path / "SKILL.md").write_text(FULL)
    skill = read_skill(str(tmp_path), "user")

    assert expanded(skill, " ") == expanded(skill, "")
    text = expanded(skill, " to prod ")
    assert text.endswith("Last line.\n\nArguments: to prod")
    for words in (str(tmp_path), "First line.", "Allowed tools: read, bash", "Permissions: network: none"):
        assert words in text
