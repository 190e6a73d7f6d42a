"""``permissions`` in a manifest: what it may say, what is wrong with it in one sentence, and what a user is told."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zutd.extensions.manifest import ManifestError, check_manifest
from zutd.extensions.permissions import (
    Permissions,
    PermissionsError,
    as_json,
    check_permissions,
    in_short,
    in_words,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(["read", "write", "net", "run", "env"])


@given(JSON | st.dictionaries(FIELDS, JSON))
def test_any_json_is_permissions_or_one_error(value: Any) -> None:
    """Whatever stands there, it is permissions of the right shape, or a sentence that begins with the field."""
    try:
        permissions = check_permissions(value)
    except PermissionsError as exc:
        assert str(exc).startswith("'permissions")
        return
    assert all(isinstance(item, str) for item in (*permissions.read, *permissions.write, *permissions.env))
    assert (type(permissions.net), type(permissions.run)) == (bool, bool)


def test_nothing_is_granted_that_is_not_named() -> None:
    """An empty object is no right at all; ``null`` is as good as not there."""
    assert check_permissions({}) == Permissions()
    assert check_permissions(dict.fromkeys(("read", "write", "net", "run", "env"))) == Permissions()


@pytest.mark.parametrize(
    "path", ["a", "./a/b", "a/../b", "a..b", "~", "~/x", "$WORKSPACE", "$WORKSPACE/x/../y", "/", "/srv/x", ".", "./"]
)
def test_paths_that_can_be_read(path: str) -> None:
    """Absolute, from the home directory, from the project, or in the extension's own directory."""
    assert check_permissions({"read": [path]}).read == (path,)


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("", "is no path"),
        ("a\0", "is no path"),
        ("..", "leaves the extension's directory"),
        ("a/../../b", "leaves the extension's directory"),
        ("~/..", "leaves the home directory"),
        ("$WORKSPACE/../x", "leaves the project"),
        ("~root", "begins with a name that is not known"),
        ("$HOME/x", "begins with a name that is not known"),
        ("$WORKSPACES", "begins with a name that is not known"),
        ("src/*", "patterns are not understood"),
    ],
)
def test_paths_that_cannot(path: str, problem: str) -> None:
    """Each is one error that names the field, the path, and what to write instead."""
    for field in ("read", "write"):
        with pytest.raises(PermissionsError, match=problem) as caught:
            check_permissions({field: ["ok", path]})
        assert f"'permissions.{field}': {path!r}" in str(caught.value)


@pytest.mark.parametrize("path", [".", "./", "a/..", "./."])
def test_its_own_directory_cannot_be_written(path: str) -> None:
    """Its manifest lies there, and with it its permissions."""
    with pytest.raises(PermissionsError, match="could change its permissions"):
        check_permissions({"write": [path]})


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ([], "must be an object"),
        ("net", "must be an object"),
        ({"nett": True}, "has no 'nett'; did you mean 'net'?; it has read, write, net, run, env"),
        ({"net": 1}, "'permissions.net' must be true or false"),
        ({"run": "yes"}, "'permissions.run' must be true or false"),
        ({"read": "/"}, "'permissions.read' must be an array of paths"),
        ({"write": [1]}, "'permissions.write' must be an array of paths"),
        ({"env": "A"}, "'permissions.env' must be an array of names"),
        ({"env": ["A=B"]}, "'A=B' is no name of a variable"),
        ({"env": [""]}, "'' is no name of a variable"),
    ],
)
def test_a_malformed_declaration_is_a_manifest_error(value: Any, problem: str) -> None:
    """The manifest is wrong, not without permissions: what is misspelt must not run with all rights."""
    with pytest.raises(ManifestError) as caught:
        check_manifest({"name": "x", "exec": "./x", "permissions": value}, "/some/where")
    assert problem in str(caught.value)
    assert "/some/where" in str(caught.value)


def test_a_manifest_without_them_and_with_null() -> None:
    """Both mean: none are declared."""
    for more in ({}, {"permissions": None}):
        assert check_manifest({"name": "x", "exec": "./x", **more}, "/").permissions is None


def test_host_env_is_part_of_env() -> None:
    """Variables are named in either place; a user is shown all of them."""
    value = {"name": "x", "exec": "./x", "host_env": ["A", "B"], "permissions": {"env": ["B", "C"]}}
    manifest = check_manifest(value, "/")
    assert manifest.permissions == Permissions(env=("B", "C", "A"))
    assert manifest.host_env == ("A", "B")


@pytest.mark.parametrize(
    ("permissions", "is_so"),
    [
        (Permissions(), False),
        (Permissions(read=("$WORKSPACE", "a", "/home/me")), False),
        (Permissions(read=("~",)), True),
        (Permissions(write=("~/x",)), True),
        (Permissions(env=("HOME",)), True),
    ],
)
def test_who_is_told_where_home_is(permissions: Permissions, is_so: bool) -> None:
    """Whoever names a path in it, or asks for the variable."""
    assert permissions.is_at_home is is_so


def test_in_words() -> None:
    """A user reads what it may do; what is dangerous about a wide path is said beside it."""
    assert in_words(None) == ("declares no permissions: it may do all that you may",)
    assert in_words(Permissions()) == ("may read its own directory, and no more",)
    assert in_words(Permissions(read=("~/", "a"), write=("b",), net=True, run=True, env=("A", "B"))) == (
        "may read ~/ (with your keys and passwords, and zutd's own), a",
        "may write b",
        "may use the network",
        "may run other programs",
        "is given A, B of your environment",
    )


def test_in_short_and_for_programs() -> None:
    """``all``, ``none``, or the names of what is granted."""
    some = Permissions(read=("a",), net=True)
    assert [in_short(value) for value in (None, Permissions(), some)] == ["all", "none", "read,net"]
    assert as_json(None) is None
    assert as_json(some) == {"read": ["a"], "write": [], "net": True, "run": False, "env": []}
