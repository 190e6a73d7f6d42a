# The set-up that scripts/demo, scripts/test and scripts/check share; source it, do not run it.
# It makes .venv beside the project from any Python 3.11+, and installs zutd into it when its sources have changed.
# pip decides where packages come from: its environment variables and configuration count as they are.

set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
VENV=$ROOT/.venv
PYTHON=$VENV/bin/python
OLDEST=3.11

# Without bytecode every start of the daemon would compile all of its sources again.
unset PYTHONDONTWRITEBYTECODE PYTHONHOME PYTHONPATH PYTHONSTARTUP

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }

die() {
    say "$*"
    exit 1
}

# Whether a command is a Python that can make the environment; on standard output, what is wrong with it.
python_problem() {
    "$1" - 2>/dev/null <<'PY' || echo "does not run"
import sys
if sys.version_info < (3, 11):
    print("is Python %d.%d" % sys.version_info[:2])
else:
    try:
        import ensurepip, venv
    except ImportError as exc:
        print("lacks the module %s (on Debian and Ubuntu: apt install python3-venv)" % exc.name)
PY
}

find_python() {
    local name problem seen="" names=(python3 python3.14 python3.13 python3.12 python3.11 python)
    [ -z "${ZUTD_PYTHON:-}" ] || names=("$ZUTD_PYTHON")
    for name in "${names[@]}"; do
        command -v "$name" >/dev/null || continue
        problem=$(python_problem "$name")
        if [ -z "$problem" ]; then
            echo "$name"
            return
        fi
        seen="$seen; $name $problem"
    done
    die "needs Python $OLDEST or newer, with venv and pip${seen:-; there is no python3 here}." \
        "Install one, or name it: ZUTD_PYTHON=/path/to/python3"
}

# A digest of what is installed: when it is the same, there is nothing to do.
fingerprint() {
    "$PYTHON" - "$ROOT" <<'PY'
import hashlib, pathlib, sys
root = pathlib.Path(sys.argv[1])
total = hashlib.sha256(sys.version.encode())
for path in [root / "pyproject.toml", *sorted((root / "zutd").rglob("*"))]:
    if path.is_file() and "__pycache__" not in path.parts:
        total.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
print(total.hexdigest())
PY
}

make_venv() {
    if "$PYTHON" -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        return
    fi
    local python
    python=$(find_python)
    say "making .venv with $python"
    "$python" -m venv --clear "$VENV" || die "cannot make $VENV with $python -m venv"
}

run_pip() {
    "$PYTHON" -m pip --no-input --disable-pip-version-check "$@" ||
        die "pip failed (its words are above). It needs a package index, or a directory of wheels (PIP_FIND_LINKS)"
}

# install [EXTRA]: zutd and its libraries, and those of an extra, are in .venv as they are in the sources.
install() {
    local extra=${1:-} stamp now began=$SECONDS
    make_venv
    stamp=$VENV/zutd-${extra:-run}.stamp
    now=$(fingerprint)
    if [ "$(cat "$stamp" 2>/dev/null)" = "$now" ]; then
        return
    fi
    say "installing zutd${extra:+ and what its tests need} into .venv (once; again only when the sources change)"
    rm -f "$VENV"/zutd-*.stamp
    run_pip install --quiet "$ROOT${extra:+[$extra]}"
    "$PYTHON" -m compileall -q "$VENV/lib" >/dev/null || true # a file that only newer Pythons understand is no harm
    echo "$now" >"$VENV/zutd-run.stamp"
    echo "$now" >"$stamp"
    say "installed in $((SECONDS - began)) s"
}
