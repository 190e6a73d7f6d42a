"""Extensions that declared permissions try to do what they did not declare: with real processes, files and sockets."""

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.e2e.harness import Daemon
from tests.e2e.prison import WAYS, Prison, attempt, prison, why_not
from tests.extensions.programs import alive, view

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


C = "import ctypes; c = ctypes.CDLL(None, use_errno=True); "
"""How code calls what Python has no function for."""


class Inside(NamedTuple):
    """A prison and its daemon."""

    place: Prison
    daemon: Daemon

    def tries(self, name: str, code: str) -> str:
        """What comes of code in a cell."""
        return attempt(self.daemon, name, code.replace("BASE", str(self.place.base)))


POSSIBLE = [way for way in WAYS if not why_not(*way)]


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_is_tried(way: tuple[str, str]) -> None:
    """Whatever of it can be tried on this machine; what cannot be is skipped here, once, with the reason."""
    if reason := why_not(*way):
        pytest.skip(reason)
    assert way in POSSIBLE


@pytest.fixture(scope="module", params=POSSIBLE, ids="-".join)
def inside(request: pytest.FixtureRequest) -> Iterator[Inside]:
    """One daemon with a cell of each kind, for all who only look or must fail."""
    backend, user = request.param
    with prison(backend, user) as place:
        place.cell("none", {})
        place.cell("files", {"read": ["$WORKSPACE"], "write": ["data"], "env": ["WANTED"]})
        place.cell("net", {"net": True})
        place.cell("run", {"run": True})
        place.cell("free")
        place.cell("victim", {})
        (place.home / "extensions/files/planted").symlink_to(place.user_home / ".ssh")
        with place.daemon("--log-level", "error", WANTED="1", UNWANTED="2", MY_API_KEY="3") as daemon:
            daemon.ready("none", "files", "net", "run", "free", "victim")
            yield Inside(place, daemon)


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", ["none", "files", "net", "run"])
@pytest.mark.parametrize(
    "path",
    [
        "BASE/user/.ssh/id",
        "BASE/home/auth.json",
        "BASE/elsewhere/file.txt",
        "BASE/home/extensions/free/free.py",
        "BASE/home/logs/ext-free.log",
        "BASE/home/extensions/files/planted/id",
        "/etc/shadow",
        "/etc/hostname",
    ],
)
def test_nobody_reads_what_it_did_not_ask_for(inside: Inside, cell: str, path: str) -> None:
    """Keys, zutd's own secrets, other extensions' files, through a link in its own directory neither."""
    assert inside.tries(cell, f"said = open('{path}').read()") in ("EACCES", "ENOENT")


def test_the_same_is_open_to_an_extension_without_permissions(inside: Inside) -> None:
    """What declares nothing runs as before: so the other tests are refused by the sandbox, and by nothing else."""
    assert inside.tries("free", "said = open('BASE/user/.ssh/id').read()") == "the key"
    assert inside.tries("free", "import subprocess; said = subprocess.check_output(['echo', 'hi'])") == "b'hi\\n'"
    assert inside.tries("free", f"open('/proc/{inside.daemon.process.pid}/environ').read()") == "done"
    assert inside.tries("free", f"os.kill({inside.daemon.process.pid}, 0)") == "done"
    assert view(inside.daemon, "free").get("permissions") is None
    assert view(inside.daemon, "free").get("sandbox") is None


def test_directories_cannot_be_listed(inside: Inside) -> None:
    """Not even names of files are told (bubblewrap shows an empty place)."""
    said = inside.tries("none", "said = os.listdir('BASE/user')")
    assert said in ("EACCES", "ENOENT", "[]")


def test_what_was_asked_for_can_be_read(inside: Inside) -> None:
    """Its own directory without asking, the project because it asked."""
    assert inside.tries("files", "said = open('BASE/work/project.txt').read()") == "the project"
    assert inside.tries("none", "said = open('BASE/work/project.txt').read()") in ("EACCES", "ENOENT")
    assert "exec" in inside.tries("none", "said = open('extension.json').read()")


@pytest.mark.parametrize("cell", ["none", "files", "net", "run"])
@pytest.mark.parametrize(
    "path", ["BASE/user/new", "BASE/work/project.txt", "BASE/elsewhere/file.txt", "extension.json", "/tmp/zutd-new"]
)
def test_nobody_writes_elsewhere(inside: Inside, cell: str, path: str) -> None:
    """Neither new files nor old ones, nor its own manifest, by which it could give itself everything."""
    real = Path(path.replace("BASE", str(inside.place.base)))
    real = real if real.is_absolute() else inside.place.home / "extensions" / cell / path
    before = real.read_text() if real.exists() else None

    assert inside.tries(cell, f"open('{path}', 'a').write('')") in ("EACCES", "ENOENT", "EROFS")
    assert (real.read_text() if real.exists() else None) == before


def test_what_it_may_write_it_may_write(inside: Inside) -> None:
    """``data`` in its own directory is made for it; there it may do everything that programs do with files."""
    code = """
os.makedirs('data/a/b', exist_ok=True)
with open('data/a/f', 'w') as file: file.write('x' * 100)
os.truncate('data/a/f', 5)
os.rename('data/a/f', 'data/a/b/g')
os.chmod('data/a/b/g', 0o640)
os.utime('data/a/b/g', (1, 1))
os.symlink('g', 'data/a/b/l')
os.link('data/a/b/g', 'data/h')
said = open('data/a/b/l').read(), sorted(os.listdir('data')), oct(os.stat('data/h').st_mode)
os.unlink('data/h')
"""
    assert inside.tries("files", code) == "('xxxxx', ['a', 'h'], '0o100640')"


@pytest.mark.parametrize(
    "code",
    [
        "os.symlink('BASE/user/.ssh', 'data/s'); said = open('data/s/id').read()",
        "os.symlink('BASE/user', 'data/u'); open('data/u/new', 'w')",
        "os.link('BASE/user/.ssh/id', 'data/stolen'); said = open('data/stolen').read()",
        "os.rename('BASE/work/project.txt', 'data/moved')",
        "os.rename('data', 'BASE/work/data')",
        "os.rename('data', 'data2')",
        "os.unlink('extension.json')",
        "os.truncate('BASE/work/project.txt', 0)",
        "os.mkfifo('BASE/work/fifo')",
        "os.mkdir('BASE/work/dir')",
        "os.rmdir('BASE/elsewhere')",
        "os.mknod('data/disk', 0o60600, os.makedev(8, 0)); said = open('data/disk', 'rb').read(1)",
        "os.open('BASE/work', os.O_TMPFILE | os.O_RDWR)",
    ],
)
def test_links_and_renames_lead_nowhere(inside: Inside, code: str) -> None:
    """A link gives no right to what it names; nothing can be moved in or out, made or emptied elsewhere."""
    for name in ("s", "u"):
        (inside.place.home / "extensions/files/data" / name).unlink(missing_ok=True)

    said = inside.tries("files", code)

    assert said in ("EACCES", "ENOENT", "EXDEV", "EROFS", "EPERM", "EBUSY")
    assert (inside.place.workspace / "project.txt").read_text() == "the project"
    assert sorted(p.name for p in inside.place.workspace.iterdir()) == ["project.txt"]
    assert not (inside.place.user_home / "new").exists()


@pytest.mark.parametrize("cell", ["none", "net", "run"])
def test_who_writes_nothing_changes_no_modes(inside: Inside, cell: str) -> None:
    """Landlock does not watch these; they are refused all the same, by path and by file descriptor."""
    key = inside.place.user_home / ".ssh/id"
    before = key.stat()
    for code in (
        "os.chmod('BASE/user/.ssh/id', 0o666)",
        "os.chown('BASE/user/.ssh/id', 65534, 65534)",
        "os.utime('BASE/user/.ssh/id', (1, 1))",
        "os.setxattr('BASE/user/.ssh/id', 'user.x', b'x')",
        f"{C}r = c.syscall(452, -100, b'BASE/user/.ssh/id', 0o666, 0); raise OSError(ctypes.get_errno(), '')",
        "with open('extension.json') as file: os.fchmod(file.fileno(), 0o666)",
    ):
        assert inside.tries(cell, code) in ("EACCES", "ENOENT", "EROFS", "ENOSYS"), code
    assert key.stat().st_mode == before.st_mode
    assert key.stat().st_mtime == before.st_mtime


# --- other processes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", ["none", "files", "net", "run"])
@pytest.mark.parametrize("file", ["environ", "cmdline", "mem", "maps", "root/etc/passwd", "cwd/project.txt", "fd/0"])
def test_the_daemon_cannot_be_looked_at(inside: Inside, cell: str, file: str) -> None:
    """Its environment holds keys; its root and working directory would be ways around."""
    said = inside.tries(cell, f"said = open('/proc/{inside.daemon.process.pid}/{file}', 'rb').read()[:9]")
    assert said in ("EACCES", "ENOENT")


@pytest.mark.parametrize("cell", ["none", "net", "run"])
def test_the_daemon_cannot_be_touched(inside: Inside, cell: str) -> None:
    """No signal, no trace, no limits: not for the daemon and not for other extensions."""
    for pid in (inside.daemon.process.pid, view(inside.daemon, "free")["pid"]):
        for code in (
            f"os.kill({pid}, 0)",
            f"os.kill({pid}, 9)",
            f"{C}r = c.ptrace(16, {pid}, 0, 0); raise OSError(ctypes.get_errno(), '') if r else SystemError()",
            f"import resource; resource.prlimit({pid}, resource.RLIMIT_NOFILE, (1, 1))",
        ):
            said = inside.tries(cell, code)
            assert said in ("EPERM", "ESRCH", "EACCES", "PermissionError: [Errno 13] Permission denied"), code
        assert alive(pid)


def test_its_own_processes_can_be_signalled(inside: Inside) -> None:
    """What it started is its own."""
    code = """
import subprocess
child = subprocess.Popen(['sleep', '60'])
child.kill()
said = child.wait()
"""
    assert inside.tries("run", code) == "-9"


def test_only_three_files_are_open(inside: Inside) -> None:
    """Nothing of the daemon's is handed on: no session file, no socket, no pipe of another extension."""
    for cell in ("none", "net"):
        code = """
found = []
for fd in range(3, 1024):
    try: found.append((fd, os.readlink(f'/proc/self/fd/{fd}')))
    except OSError: pass
said = found
"""
        assert inside.tries(cell, code) == "[]"


@pytest.mark.parametrize("cell", ["none", "files", "net", "run"])
def test_keys_and_memory_of_others_are_out_of_reach(inside: Inside, cell: str) -> None:
    """The kernel's keyrings, System V memory, POSIX queues; io_uring, which would go round the filter."""
    numbers = {"keyctl": 250, "shmget": 29, "semget": 64, "msgget": 68, "mq_open": 240, "io_uring_setup": 425}
    if os.uname().machine != "x86_64":
        pytest.skip("the numbers are those of x86_64")
    code = """
import ctypes
c = ctypes.CDLL(None, use_errno=True)
said = []
for number in NUMBERS:
    c.syscall(number, 0, 0, 0, 0, 0)
    said.append(errno.errorcode[ctypes.get_errno()])
said = ' '.join(said)
""".replace("NUMBERS", str(list(numbers.values())))
    assert inside.tries(cell, code) == "EACCES EACCES EACCES EACCES EACCES ENOSYS"
    assert inside.tries(cell, "said = open('/proc/keys').read()") in ("EACCES", "")


@pytest.mark.parametrize("cell", ["none", "files", "net", "run"])
def test_root_is_no_root_inside(inside: Inside, cell: str) -> None:
    """No capability is left but the one for other users' files, none can be had back, and nothing can be mounted."""
    status = inside.tries(cell, "said = open('/proc/self/status').read()")
    capabilities = {line.split()[0]: int(line.split()[1], 16) for line in status.splitlines() if line[:3] == "Cap"}
    assert all(capabilities[name] in (0, 2) for name in ("CapInh:", "CapPrm:", "CapEff:", "CapAmb:")), capabilities
    assert "NoNewPrivs:\t1" in status
    mount = (
        f"{C}r = c.mount(b'x', b'/tmp', b'tmpfs', 0, None); "
        "raise OSError(ctypes.get_errno(), '') if r else SystemError()"
    )
    assert inside.tries(cell, mount) in ("EPERM", "EACCES", "ENOENT")


# --- network ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def servers(inside: Inside) -> Iterator[dict[str, socket.socket]]:
    """Servers on this machine: TCP, UDP, and a local socket of each kind."""
    made = {
        "tcp": socket.create_server(("127.0.0.1", 0)),
        "udp": socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        "path": socket.socket(socket.AF_UNIX, socket.SOCK_STREAM),
        "datagrams": socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
        "abstract": socket.socket(socket.AF_UNIX, socket.SOCK_STREAM),
    }
    made["udp"].bind(("127.0.0.1", 0))
    paths = [inside.place.workspace / "listening", inside.place.workspace / "mailbox"]
    made["path"].bind(str(paths[0]))
    made["datagrams"].bind(str(paths[1]))
    made["abstract"].bind(f"\0zutd-test-{os.getpid()}")
    for path in paths:
        path.chmod(0o777)
    for name in ("path", "abstract"):
        made[name].listen()
    for server in made.values():
        server.settimeout(0.05)
    yield made
    for server in made.values():
        server.close()
    for path in paths:
        path.unlink()


def ways_out(servers: dict[str, socket.socket]) -> dict[str, str]:
    """Code for each server that reaches it where it can."""
    start = "import socket as s; "
    tcp, udp = (servers[name].getsockname()[1] for name in ("tcp", "udp"))
    return {
        "tcp": f"{start}s.create_connection(('127.0.0.1', {tcp}), 2)",
        "udp": f"{start}s.socket(s.AF_INET, s.SOCK_DGRAM).sendto(b'secret', ('127.0.0.1', {udp}))",
        "path": f"{start}s.socket(s.AF_UNIX).connect('BASE/work/listening')",
        "datagrams": f"{start}a, b = s.socketpair(s.AF_UNIX, s.SOCK_DGRAM); a.sendto(b'secret', 'BASE/work/mailbox')",
        "abstract": f"{start}s.socket(s.AF_UNIX).connect('\\0zutd-test-{os.getpid()}')",
    }


@pytest.mark.parametrize("cell", ["none", "files", "run"])
def test_without_net_nothing_gets_out(inside: Inside, servers: dict[str, socket.socket], cell: str) -> None:
    """TCP, UDP, local sockets by path and by name, raw ones, those of the kernel: none can even be made."""
    for way, code in ways_out(servers).items():
        assert inside.tries(cell, code) == "EACCES", way
    for family in ("AF_INET6", "AF_NETLINK", "AF_PACKET", "AF_VSOCK"):
        assert inside.tries(cell, f"import socket as s; s.socket(s.{family}, s.SOCK_RAW)") == "EACCES", family
    for name in ("tcp", "path", "abstract"):
        with pytest.raises(TimeoutError):
            servers[name].accept()
    for name in ("udp", "datagrams"):
        with pytest.raises(TimeoutError):
            servers[name].recv(10)


def test_with_net_there_is_a_network_and_no_more(inside: Inside, servers: dict[str, socket.socket]) -> None:
    """TCP and UDP work; local sockets, behind which other programs do as they are told, do not."""
    ways = ways_out(servers)

    assert inside.tries("net", ways["tcp"]) == "done"
    servers["tcp"].accept()[0].close()
    assert inside.tries("net", ways["udp"]) == "6" or inside.tries("net", ways["udp"]) == "done"
    assert servers["udp"].recv(10) == b"secret"
    assert inside.tries("net", "import socket as s; s.getaddrinfo('localhost', 80)") == "done"
    assert inside.tries("net", "import ssl; ssl.create_default_context()") == "done"
    for way in ("path", "datagrams", "abstract"):
        assert inside.tries("net", ways[way]) == "EACCES", way
        assert inside.tries("free", ways[way]) == "done", way


def test_a_pair_of_sockets_is_no_way_out(inside: Inside) -> None:
    """Event loops need pairs that only talk to each other; these work."""
    code = "import socket as s; a, b = s.socketpair(); a.send(b'hi'); said = b.recv(9)"
    assert inside.tries("none", code) == "b'hi'"


# --- programs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", ["none", "files", "net"])
@pytest.mark.parametrize(
    "code",
    [
        "import subprocess; said = subprocess.check_output(['/bin/echo', 'hi'])",
        "os.fork() or os._exit(0)",
        "os.system('true') and os.kill(0, 0); raise PermissionError(13, '') if os.system('true') else SystemError()",
        "os.posix_spawn('/bin/echo', ['echo'], {})",
        "os.execv('/bin/echo', ['echo', 'hi'])",
        "os.memfd_create('x')",
        f"{C}r = c.unshare(0x10000000); raise OSError(ctypes.get_errno(), '') if r else SystemError()",
    ],
)
def test_without_run_no_program_runs(inside: Inside, cell: str, code: str) -> None:
    """No new process, no other program in its own place, none made in memory."""
    assert inside.tries(cell, code) in ("EACCES", "ENOSYS")


def test_becoming_another_program_by_the_loader_gives_no_right(inside: Inside) -> None:
    """The loader must be executable, and loads whatever may be read: what comes of it is as confined as before."""
    loader = "/lib64/ld-linux-x86-64.so.2"
    if not os.path.exists(loader):
        pytest.skip(f"needs {loader}")
    code = f"""
read, write = os.pipe()
os.dup2(write, 2)
os.execv({loader!r}, ['ld', '/bin/cat', 'BASE/user/.ssh/id'])
"""
    reply = inside.daemon.refused("invoke_command", name="victim", args=code.replace("BASE", str(inside.place.base)))
    assert "disconnected: exit status 1" in reply["error"]
    inside.daemon.event("ext_ready", extension="victim")


def test_without_run_there_are_threads(inside: Inside) -> None:
    """A thread is no process."""
    code = "import threading; t = threading.Thread(target=lambda: None); t.start(); t.join()"
    assert inside.tries("none", code) == "done"


def test_with_run_programs_run_in_the_same_sandbox(inside: Inside) -> None:
    """What it starts can do no more than it can."""
    cat = "import subprocess; said = subprocess.run(['cat', 'PATH'], capture_output=True).stderr"

    assert inside.tries("run", "import subprocess; said = subprocess.check_output(['echo', 'hi'])") == "b'hi\\n'"
    for path in ("BASE/user/.ssh/id", f"/proc/{inside.daemon.process.pid}/environ"):
        said = inside.tries("run", cat.replace("PATH", path))
        assert "Permission denied" in said or "No such file" in said


# --- the environment -------------------------------------------------------------------------------------------------


def test_the_environment_holds_what_was_asked_for(inside: Inside) -> None:
    """With permissions: a few plain variables, zutd's own, and those that are named. Without: as before."""
    plain = {"PATH", "HOME", "USER", "LOGNAME", "PWD", "TMPDIR", "LANG", "ZUT_HOME", "ZUTD_EXTENSION_DIR"}
    code = "said = json.dumps(sorted(os.environ))"

    files, none, free = (set(json.loads(inside.tries(cell, code))) for cell in ("files", "none", "free"))

    assert inside.tries("none", "said = os.environ['HOME'] == os.getcwd()") == "True"
    assert none <= plain | {"ZUTD_INSTANCE", "ZUTD_CHILD"}
    assert files - none == {"WANTED"}
    assert "UNWANTED" in free
    assert "MY_API_KEY" not in free


# --- what is said of it ----------------------------------------------------------------------------------------------


def test_frontends_see_permissions_and_what_keeps_it_to_them(inside: Inside) -> None:
    """``get_extensions`` has what was declared, by what it is enforced, and the gaps."""
    seen_by_frontend = view(inside.daemon, "files")

    assert seen_by_frontend["permissions"] == {
        "read": ["$WORKSPACE"],
        "write": ["data"],
        "net": False,
        "run": False,
        "env": ["WANTED"],
    }
    sandbox = seen_by_frontend["sandbox"]
    assert (sandbox["mode"], sandbox["not_enforced"]) == ("auto", [])
    assert ("bubblewrap" in sandbox["by"]) == (not sandbox["gaps"])
    assert any(name.startswith("Landlock") for name in sandbox["by"])
    assert {f["extension"] for f in inside.daemon.frames if f["type"] == "ext_error"} <= {"victim"}
