#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""Test bed: what guests have in common, whatever runs them.

    with Guest(mem_mib=512) as guest:
        guest.target(128)
        guest.wait_actual(128 << 20)
        print(guest.meminfo()['MemFree'])

qemu.Guest runs in the distribution's QEMU, uml.UmlGuest is User-Mode Linux with
vhost-user-balloon for a host; both are a Machine.

Three channels lead into a guest. The console is a file: what the kernel said last
is there even when nothing else is. Commands go over the second serial port to an
agent that is process 1 (guest/agent.c). QMP is the operator's view; targets,
statistics and events come from there.

Whatever a Machine starts and creates is gone when its `with` block ends, and
also when the process that runs the test is killed: a watcher (see _WATCHER)
waits for that.
"""

import contextlib
import fcntl
import hashlib
import json
import lzma
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Callable, Iterable, NamedTuple

ROOT = Path(__file__).resolve().parents[3]
BUILD = ROOT / 'build'
AGENT_SOURCE = ROOT / 'tools/testing/vm/guest/agent.c'
SELFTESTS = ROOT / 'tools/testing/selftests/virtio_balloon'
PAGE = 4096
MIB = 1 << 20

#: What is tested. A test that guards something fails with BALLOON_DRIVER=base;
#: BALLOON_KERNEL=stock is the quickest way to try one.
KERNEL = os.environ.get('BALLOON_KERNEL', 'x86-debug')
DRIVER = os.environ.get('BALLOON_DRIVER', 'ours')

#: Seconds until a guest must have booted. TCG beside a compiler is slow.
BOOT_TIMEOUT = 180

#: What no console may say unless the test expects it.
SPLATS = re.compile('|'.join((
    r'BUG:', r'WARNING:', r'Oops', r'KASAN', r'KFENCE', r'UBSAN',
    r'kernel BUG', r'Kernel panic', r'general protection fault',
    r'INFO: task .* blocked', r'INFO: rcu', r'rcu:.*stall', r'soft lockup',
    r'possible circular locking', r'inconsistent lock state',
    r'possible recursive locking', r'suspicious RCU usage',
    r'sleeping function called', r'scheduling while atomic',
    r'Call Trace', r'stack smashing', r'refcount_t', r'list_(add|del) corruption',
    r'workqueue lockup', r'page allocation failure', r'Bad page state',
    r'Bad rss-counter', r'nobody cared', r'held lock freed', r'bad unlock balance',
    r'DEBUG_LOCKS_WARN_ON', r'swiotlb buffer is full', r'unable to handle')))

# Cleans up after a test process that did not live to do it: lines on standard
# input name the leaders of process groups, the line "done" says that all is in
# order, and the end of the input without it means that the test process died. A
# group is killed only while its leader's command line names our directory.
_WATCHER = '''
while read -r line; do
        [ "$line" = done ] && exit
        leaders="$leaders $line"
done
for leader in $leaders; do
        grep -qF "$1" "/proc/$leader/cmdline" 2>/dev/null && kill -KILL "-$leader"
done
rm -rf "$1"
'''


class BedError(Exception):
    """The bed cannot do what was asked: one line, with cause and remedy."""


class GuestError(Exception):
    """A command failed in the guest, or the guest is gone."""


class GuestTimeout(GuestError):
    """The guest did not answer in time."""


class SplatError(AssertionError):
    """The guest's kernel complained on its console."""


class QMPError(Exception):
    """The host refused a QMP command; its class and description are kept."""

    def __init__(self, command: str, error: dict):
        super().__init__(f"{command}: {error['class']}: {error['desc']}")
        self.error_class: str = error['class']
        self.desc: str = error['desc']


class Event(NamedTuple):
    """A QMP event.

    time is time.monotonic() of its arrival, stamp when it happened by QEMU, on the
    clock of time.time(). QEMU holds back events that come too often.
    """
    time: float
    stamp: float
    name: str
    data: dict


def wait_for(pred: Callable[[], Any], timeout: float, what: str,
             interval: float = 0.05) -> Any:
    """Return what pred returns as soon as that is true."""
    end = time.monotonic() + timeout
    while True:
        value = pred()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f'not within {timeout:g} s: {what}')
        time.sleep(interval)


def host_available() -> int:
    """Bytes of memory that the host can still give."""
    return _parse_meminfo(Path('/proc/meminfo').read_text())['MemAvailable']


def _parse_meminfo(text: str) -> dict:
    """Values of /proc/meminfo in bytes; those without a unit as they are."""
    info = {}
    for line in text.splitlines():
        name, value = line.split(':')
        number, *unit = value.split()
        info[name] = int(number) * (1024 if unit else 1)
    return info


def _parse_counters(text: str) -> dict:
    """Lines of 'name value'."""
    return {name: int(value)
            for name, value in (line.split()[:2] for line in text.splitlines())}


# What is booted -------------------------------------------------------------

def existing(path: Path, what: str, remedy: str) -> Path:
    """The path, if it is there."""
    if not path.exists():
        raise BedError(f'no {what} at {path}: {remedy}')
    return path


class Kernel(NamedTuple):
    """A kernel image and the modules that a guest loads, in order."""
    image: Path
    modules: list


def built_kernel(name: str, driver: str | None, image: str) -> Kernel:
    """A kernel of build/kernel, whose image has that path there, with a driver:
    'ours', 'base' (the base tree's own) or None."""
    tree = BUILD / 'kernel' / name
    image_path = existing(tree / image, f'kernel {name}', f'run make kernel-{name}')
    if not driver:
        return Kernel(image_path, [])
    path, remedy = {
        'ours': (tree / 'drivers/virtio/balloon', f'run make kernel-{name}'),
        'base': (BUILD / 'base-module' / name, f'run scripts/base-module {name}'),
    }[driver]
    return Kernel(image_path, [existing(path / 'virtio_balloon.ko',
                                        f'driver ({driver}) for kernel {name}', remedy)])


def module_bytes(path: Path) -> bytes:
    """A module, unpacked."""
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == '.xz' else data


# Initial RAM disk -----------------------------------------------------------

class _Cpio:
    """Writes a cpio archive as the kernel unpacks it; devices need no root."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.inode = 0

    def add(self, name: str, mode: int, content: bytes = b'',
            device: tuple = (0, 0)) -> None:
        """Append one file, directory, symbolic link or device."""
        self.inode += 1
        encoded = name.encode() + b'\0'
        fields = (self.inode, mode, 0, 0, 1, 0, len(content), 0, 0,
                  *device, len(encoded), 0)
        self.data += b'070701' + b''.join(b'%08X' % f for f in fields) + encoded
        self._align()
        self.data += content
        self._align()

    def directory(self, name: str) -> None:
        """Append a directory."""
        self.add(name, 0o040755)

    def file(self, name: str, content: bytes, mode: int = 0o644) -> None:
        """Append a regular file."""
        self.add(name, 0o100000 | mode, content)

    def finish(self) -> bytes:
        """The archive; several can follow one another."""
        self.add('TRAILER!!!', 0)
        return bytes(self.data)

    def _align(self) -> None:
        self.data += bytes(-len(self.data) % 4)


def _compile(sources: Iterable[Path], include: Path, out: Path) -> None:
    for source in sources:
        command = [os.environ.get('CC', 'gcc'), '-O2', '-Wall', '-static', '-s',
                   f'-I{include}', '-o', str(out / source.stem), str(source)]
        try:
            result = subprocess.run(command, capture_output=True, text=True,
                                    check=False)
        except FileNotFoundError as error:
            raise BedError(f'{command[0]} is not in PATH: apt-get install gcc '
                           'libc6-dev') from error
        if result.returncode:
            raise BedError(f'{source} does not compile: {result.stderr.strip()}')


def base_initramfs() -> Path:
    """The part of the RAM disk that all guests share, built if need be."""
    busybox = shutil.which('busybox')
    if not busybox or b'.interp\0' in Path(busybox).read_bytes():
        raise BedError('no static busybox: apt-get install busybox-static')
    harness = BUILD / 'base/tools/testing/selftests'
    # Any directory below it: the programs say "../kselftest_harness.h".
    include = existing(harness / 'kselftest', 'kselftest harness', 'run make tree')
    sources = [AGENT_SOURCE, *sorted(SELFTESTS.glob('*.c'))]
    inputs = [Path(__file__), Path(busybox), *sources,
              *sorted(SELFTESTS.glob('*.h')),
              harness / 'kselftest_harness.h', harness / 'kselftest.h']
    digest = hashlib.sha256(b'\0'.join(p.read_bytes() for p in inputs)).hexdigest()
    out = BUILD / 'vm'
    out.mkdir(parents=True, exist_ok=True)
    image = out / f'initramfs-{digest[:16]}.cpio'
    with open(out / 'lock', 'w', encoding='ascii') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if image.exists():
            return image
        for old in out.glob('initramfs-*.cpio'):
            old.unlink()
        programs = out / 'programs'
        shutil.rmtree(programs, ignore_errors=True)
        programs.mkdir()
        _compile(sources, include, programs)
        cpio = _Cpio()
        for name in ('bin', 'dev', 'proc', 'sys', 'tmp', 'modules', 'selftests'):
            cpio.directory(name)
        cpio.add('dev/console', 0o020600, device=(5, 1))
        cpio.file('init', (programs / 'agent').read_bytes(), 0o755)
        cpio.file('bin/busybox', Path(busybox).read_bytes(), 0o755)
        applets = subprocess.run([busybox, '--list'], capture_output=True,
                                 text=True, check=True).stdout.split()
        for applet in applets:
            if applet != 'busybox':
                cpio.add(f'bin/{applet}', 0o120777, b'busybox')
        for source in sources[1:]:
            cpio.file(f'selftests/{source.stem}',
                      (programs / source.stem).read_bytes(), 0o755)
        part = image.with_suffix('.part')
        part.write_bytes(cpio.finish())
        part.rename(image)
    return image


def module_initramfs(modules: list, load: bool, params: str) -> bytes:
    """The guest's own part: its modules, and the list of those to load."""
    cpio = _Cpio()
    lines = []
    for path in modules:
        name = path.name.split('.')[0]
        cpio.file(f'modules/{name}.ko', module_bytes(path))
        balloon = name == 'virtio_balloon'
        if load or not balloon:
            lines.append(f'/modules/{name}.ko {params if balloon else ""}\n')
    cpio.file('modules.list', ''.join(lines).encode())
    return cpio.finish()


# Channels -------------------------------------------------------------------

class QMP:
    """The host's control socket. A thread reads it, so that events have a time."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.changed = threading.Condition()
        self.command_lock = threading.Lock()
        self.events: list = []
        self.reply: dict | None = None
        self.greeted = False
        self.closed = False
        threading.Thread(target=self._read, daemon=True).start()
        with self.changed:
            self.changed.wait_for(lambda: self.greeted or self.closed)

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            with self.sock.makefile('r', encoding='utf-8') as lines:
                for line in lines:
                    self._take(json.loads(line))
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    def _take(self, message: dict) -> None:
        with self.changed:
            if 'event' in message:
                stamp = message['timestamp']
                self.events.append(Event(
                    time.monotonic(), stamp['seconds'] + stamp['microseconds'] / 1e6,
                    message['event'], message.get('data', {})))
            elif 'QMP' in message:
                self.greeted = True
            else:
                self.reply = message
            self.changed.notify_all()

    def execute(self, command: str, arguments: dict, timeout: float) -> Any:
        """One command and its answer."""
        with self.command_lock:
            self.reply = None
            message = {'execute': command}
            if arguments:
                message['arguments'] = arguments
            try:
                self.sock.sendall(json.dumps(message).encode() + b'\n')
            except OSError as error:
                raise GuestError(f'host is gone: {command} not sent') from error
            with self.changed:
                self.changed.wait_for(lambda: self.reply or self.closed, timeout)
                reply = self.reply
        if not reply:
            raise GuestError(f'host is gone during {command}' if self.closed else
                             f'host did not answer {command} in {timeout:g} s')
        if 'error' in reply:
            raise QMPError(command, reply['error'])
        return reply['return']


class Job:
    """A command that runs in the guest."""

    def __init__(self, agent: 'Agent', number: int, command: str) -> None:
        self.agent = agent
        self.number = number
        self.command = command
        self.chunks: list = []
        self.status: int | None = None

    @property
    def output(self) -> str:
        """What it wrote so far."""
        return b''.join(self.chunks).decode(errors='replace')

    @property
    def raw(self) -> bytes:
        """The same, as it came."""
        return b''.join(self.chunks)

    def done(self) -> bool:
        """Whether it ended."""
        return self.status is not None

    def wait(self, timeout: float = 60) -> tuple:
        """Wait for its end; (exit status, output). A signal is 128 + number."""
        with self.agent.changed:
            self.agent.changed.wait_for(
                lambda: self.done() or self.agent.closed, timeout)
        if self.status is None:
            if self.agent.closed:
                raise GuestError(f'guest is gone during: {self.command}')
            raise GuestTimeout(f'not done in {timeout:g} s: {self.command}\n'
                               + self.output)
        code = os.waitstatus_to_exitcode(self.status)
        return (128 - code if code < 0 else code), self.output

    def kill(self, signum: int = signal.SIGKILL) -> None:
        """Signal it and all that it started; wait() tells when it is gone."""
        self.agent.send(b'K %d %d\n' % (self.number, signum))


class Agent:
    """The host's end of the command channel; guest/agent.c tells the frames."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.changed = threading.Condition()
        self.send_lock = threading.Lock()
        self.jobs: dict = {}
        self.greeting: str | None = None
        self.closed = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            with self.sock.makefile('rb') as stream:
                while self._read_frame(stream):
                    pass
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    def _read_frame(self, stream: Any) -> bool:
        fields = stream.readline().split()
        if not fields:
            return False
        kind, *numbers = fields
        data = stream.read(int(numbers[-1])) if kind in (b'H', b'O') else b''
        with self.changed:
            if kind == b'H':
                self.greeting = data.decode()
            elif kind == b'O' and int(numbers[0]) in self.jobs:
                self.jobs[int(numbers[0])].chunks.append(data)
            elif kind == b'X' and int(numbers[0]) in self.jobs:
                self.jobs.pop(int(numbers[0])).status = int(numbers[1])
            elif kind == b'X':
                # The end of what another host started: the guest was restored.
                self.greeting = ''
            self.changed.notify_all()
        return True

    def send(self, data: bytes) -> None:
        """Send a whole frame."""
        try:
            with self.send_lock:
                self.sock.sendall(data)
        except OSError as error:
            raise GuestError('guest is gone') from error

    def start(self, number: int, command: str) -> Job:
        """Start a command."""
        job = Job(self, number, command)
        with self.changed:
            self.jobs[number] = job
        data = command.encode()
        self.send(b'R %d %d\n' % (number, len(data)) + data)
        return job


# The guest ------------------------------------------------------------------

#: Guests that run now, so that a failing test can show their consoles.
live: list = []


class Machine:
    """A virtual machine with a balloon: all but how it is started.

    name         for messages
    mem_mib      RAM
    allow_splats regular expressions for complaints on the console that the
                 test expects; True: anything goes

    Whatever runs it says how in _start(), which sets what is None here.
    """

    #: Where the balloon is in the host's object tree.
    BALLOON = '/machine/peripheral/balloon0'

    def __init__(self, name: str, mem_mib: int, allow_splats: Any) -> None:
        self.name = name
        self.mem_mib = mem_mib
        self.allow_splats = allow_splats
        self.dir: Path | None = None
        self._jobs = 0
        self._console_end = ''
        self._log_end = ''
        self._complaints_seen = 0
        self._process: subprocess.Popen | None = None
        self._watcher: subprocess.Popen | None = None
        self._agent: Any = None
        self._qmp: Any = None

    # Start and end

    def __enter__(self) -> 'Machine':
        try:
            self.dir = Path(tempfile.mkdtemp(prefix='balloon-vm-', dir=self._scratch()))
            self._start()
        except BaseException as error:
            self._stop()
            if not isinstance(error, BedError):
                self._show_console()
            raise
        return self

    def __exit__(self, exc_type: Any, exc: Any, trace: Any) -> None:
        try:
            complaints = self.new_complaints()
        except (GuestError, QMPError) as error:
            complaints = [str(error)]
        finally:
            self._stop()
        if exc_type or complaints:
            self._show_console()
        if complaints and not exc_type:
            raise SplatError(f'{self.name}: ' + '; '.join(complaints[:5]))

    def _scratch(self) -> str:
        """Where its directory is made."""
        return tempfile.gettempdir()

    def _start(self) -> None:
        """Start it and open its channels, in self.dir."""
        raise NotImplementedError

    def _write_initrd(self, modules: list, load: bool, params: str) -> Path:
        assert self.dir
        initrd = self.dir / 'initrd'
        base = base_initramfs()
        need = base.stat().st_size + 64 * MIB
        if shutil.disk_usage(self.dir).free < need:
            raise BedError(f'less than {need >> 20} MiB free in {self.dir.parent}: '
                           'make room, or point TMPDIR elsewhere')
        with open(initrd, 'wb') as out:
            out.write(base.read_bytes())
            out.write(module_initramfs(modules, load, params))
        return initrd

    def _watch(self) -> None:
        """Have all of it end with this process, from now on."""
        self._watcher = subprocess.Popen(
            ['/bin/sh', '-c', _WATCHER, 'watcher', str(self.dir)],
            stdin=subprocess.PIPE, start_new_session=True)

    def _launch(self, command: list, log: str, fds: Iterable = (),
                env: dict | None = None) -> subprocess.Popen:
        """Start a process in a group of its own that does not outlive us."""
        assert self.dir
        with open(self.dir / log, 'ab') as out:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                pass_fds=tuple(fds), env=env, start_new_session=True)
        self._tell_watcher(process.pid)
        return process

    def _tell_watcher(self, what: Any) -> None:
        assert self._watcher and self._watcher.stdin
        self._watcher.stdin.write(f'{what}\n'.encode())
        self._watcher.stdin.flush()

    def _wait_boot(self) -> None:
        agent = self._agent
        with contextlib.suppress(TimeoutError):
            wait_for(lambda: agent.greeting is not None or agent.closed
                     or 'Kernel panic' in self.console, BOOT_TIMEOUT, 'boot')
        if agent.greeting is None:
            raise GuestError(f'{self.name} does not boot: '
                             + ' '.join(self._host_log().split()))
        if agent.greeting:
            raise GuestError(f'{self.name}: module not loaded: {agent.greeting}')

    def _host_log(self) -> str:
        """What the host said."""
        raise NotImplementedError

    def _end(self) -> None:
        """End the processes."""
        if self._process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _stop(self) -> None:
        """End everything, keep the console, remove the rest."""
        if self in live:
            live.remove(self)
        self._end()
        for channel in filter(None, (self._agent, self._qmp)):
            channel.sock.close()
        self._console_end = self.console
        self._log_end = self._host_log()
        if self._watcher:
            self._tell_watcher('done')
            assert self._watcher.stdin
            self._watcher.stdin.close()
            self._watcher.wait()
        self._process = self._watcher = self._agent = self._qmp = None
        if self.dir:
            shutil.rmtree(self.dir, ignore_errors=True)
            self.dir = None

    def _show_console(self) -> None:
        text = self.console
        print(f'--- console of {self.name} (last 200 lines)\n'
              + '\n'.join(text.splitlines()[-200:])
              + f'\n--- what its host said\n{self._log_end}')

    # Commands

    def start(self, command: str) -> Job:
        """Run a shell command in the background."""
        self._jobs += 1
        return self._agent.start(self._jobs, command)

    def try_run(self, command: str, timeout: float = 60) -> tuple:
        """Run a shell command; (exit status, output)."""
        return self.start(command).wait(timeout)

    def run(self, command: str, timeout: float = 60) -> str:
        """Run a shell command that must succeed; its output."""
        status, output = self.try_run(command, timeout)
        if status:
            raise GuestError(f'exit status {status}: {command}\n{output}')
        return output

    def read(self, path: str) -> str:
        """The contents of a file."""
        return self.run(f'cat {path}')

    def fill(self, mib: int, timeout: float = 180) -> None:
        """Use so much memory once, so that the host has to back it.

        As a file: where every page fault of a program is dear, the kernel's own
        writing is not.
        """
        self.run(f'dd if=/dev/zero of=/tmp/filled bs=1M count={mib} && rm /tmp/filled',
                 timeout)

    def vmstat(self) -> dict:
        """/proc/vmstat."""
        return _parse_counters(self.read('/proc/vmstat'))

    def meminfo(self) -> dict:
        """/proc/meminfo, in bytes."""
        return _parse_meminfo(self.read('/proc/meminfo'))

    def debugfs(self) -> dict:
        """The driver's counters."""
        return _parse_counters(self.read('/sys/kernel/debug/virtio_balloon/*/stat'))

    def bitmap(self) -> dict:
        """How well the page bitmap is used, by the driver."""
        return _parse_counters(self.read('/sys/kernel/debug/virtio_balloon/*/bitmap'))

    def has_feature(self, bit: int) -> bool:
        """Whether driver and device have agreed on a feature."""
        return self.read('/sys/bus/virtio/drivers/virtio_balloon/virtio*/features')[bit] == '1'

    def state(self) -> str:
        """What the driver says it is doing, and why."""
        return self.read('/sys/kernel/debug/virtio_balloon/*/state')

    # QMP

    def qmp(self, command: str, *, qmp_timeout: float = 60, **arguments: Any) -> Any:
        """A QMP command and what it returns."""
        return self._qmp.execute(command, arguments, qmp_timeout)

    def qmp_events(self, name: str | None = None) -> list:
        """Events so far."""
        return [e for e in list(self._qmp.events) if name in (None, e.name)]

    def wait_event(self, name: str, timeout: float, after: float = 0) -> Event:
        """The first such event after a point of time.monotonic()."""
        return wait_for(lambda: next((e for e in self.qmp_events(name)
                                      if e.time > after), None),
                        timeout, f'event {name}')

    def target(self, mib: float) -> None:
        """How much memory the guest should keep."""
        self.qmp('balloon', value=int(mib * MIB))

    def actual(self) -> int:
        """How much memory the guest has, as its balloon last said; bytes."""
        return self.qmp('query-balloon')['actual']

    def wait_actual(self, size: int, tolerance: int = 0, timeout: float = 60) -> int:
        """Wait until the guest has as much, give or take a tolerance."""
        last = 0

        def reached() -> bool:
            nonlocal last
            last = self.actual()
            return abs(last - size) <= tolerance

        try:
            wait_for(reached, timeout, f'actual {size}')
        except TimeoutError as error:
            raise TimeoutError(f'{error}; it is {last} ({last / MIB:.1f} MiB)') from None
        return last

    def guest_stats(self) -> dict:
        """Statistics as the guest last gave them; 'last-update' tells when."""
        return self.qmp('qom-get', path=self.BALLOON, property='guest-stats')

    def stats_interval(self, seconds: int) -> None:
        """Ask the guest for statistics that often; 0: not at all."""
        self.qmp('qom-set', path=self.BALLOON,
                 property='guest-stats-polling-interval', value=seconds)

    # Host's view

    @property
    def pid(self) -> int:
        """The guest's process on the host."""
        assert self._process
        return self._process.pid

    def alive(self) -> bool:
        """Whether the guest's process runs."""
        return self._process is not None and self._process.poll() is None

    def wait_exit(self, timeout: float = 60) -> int:
        """Wait for its end after a shutdown; its exit status."""
        assert self._process
        return self._process.wait(timeout)

    def host_cpu(self) -> float:
        """Seconds of processor time that the guest's process took."""
        stat = Path(f'/proc/{self.pid}/stat').read_text(encoding='ascii')
        fields = stat.rsplit(')', 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')

    def host_rss(self) -> int:
        """Bytes of host memory behind the guest."""
        raise NotImplementedError

    def kicks(self) -> int:
        """Notifications that the guest sent to virtio devices so far."""
        raise NotImplementedError

    # Console

    @property
    def console(self) -> str:
        """What the guest's kernel said so far."""
        if self.dir:
            with contextlib.suppress(FileNotFoundError):
                return (self.dir / 'console').read_text(errors='replace')
        return self._console_end

    def wait_console(self, pattern: str, timeout: float) -> re.Match:
        """Wait for a line."""
        return wait_for(lambda: re.search(pattern, self.console, re.M),
                        timeout, f'console line {pattern!r}')

    def splats(self) -> list:
        """Lines of the console that the test did not expect."""
        if self.allow_splats is True:
            return []
        allowed = [re.compile(a) for a in self.allow_splats]
        return [line for line in self.console.splitlines()
                if SPLATS.search(line) and not any(a.search(line) for a in allowed)]

    def complaints(self) -> list:
        """What is wrong whatever the test."""
        return [f'kernel complained: {line}' for line in self.splats()]

    def new_complaints(self) -> list:
        """Those since the last call, for guests that several tests share."""
        found = self.complaints()
        new = found[self._complaints_seen:]
        self._complaints_seen = len(found)
        return new
