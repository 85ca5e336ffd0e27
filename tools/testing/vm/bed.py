#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""Test bed: boots a guest in the distribution's QEMU and talks to it.

    with Guest(mem_mib=512) as guest:
        guest.target(128)
        guest.wait_actual(128 << 20)
        print(guest.meminfo()['MemFree'])

Three channels lead into a guest. The console (first serial port) is a file:
what the kernel said last is there even when nothing else is. Commands go over
the second serial port to an agent that is process 1 (guest/agent.c). QMP is
the operator's view; targets, statistics and events come from there.

Whatever a Guest starts and creates is gone when its `with` block ends, and
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
QEMU = 'qemu-system-x86_64'
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

# Cleans up after a test process that did not live to do it: a line on standard
# input names the QEMU process, a second one says that all is in order, and the
# end of the input without it means that the test process died. The process is
# killed only while its command line names our directory.
_WATCHER = '''
read -r pid && read -r _ && exit
grep -qF "$1" "/proc/$pid/cmdline" 2>/dev/null && kill -KILL "$pid"
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
    """QEMU refused a QMP command; its class and description are kept."""

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


def kvm_usable() -> bool:
    """Whether QEMU can use KVM here."""
    return os.access('/dev/kvm', os.R_OK | os.W_OK)


def qemu_path() -> str:
    """Where QEMU is."""
    path = shutil.which(QEMU)
    if not path:
        raise BedError(f'{QEMU} is not in PATH: apt-get install qemu-system-x86')
    return path


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

def _existing(path: Path, what: str, remedy: str) -> Path:
    if not path.exists():
        raise BedError(f'no {what} at {path}: {remedy}')
    return path


class _Kernel(NamedTuple):
    """A kernel image and the modules that a guest loads, in order."""
    image: Path
    modules: list


def _built_kernel(name: str, driver: str | None) -> _Kernel:
    tree = BUILD / 'kernel' / name
    remedy = 'run make kernels'
    image = _existing(tree / 'arch/x86/boot/bzImage', f'kernel {name}', remedy)
    module = {
        None: None,
        'ours': tree / 'drivers/virtio/balloon/virtio_balloon.ko',
        'base': BUILD / 'base-module' / name / 'virtio_balloon.ko',
    }[driver]
    if module:
        _existing(module, f'driver ({driver}) for kernel {name}', remedy)
    return _Kernel(image, [module] if module else [])


def _stock_kernel(driver: str | None) -> _Kernel:
    remedy = 'run make stock'
    image = _existing(BUILD / 'stock/vmlinuz', 'stock kernel', remedy)
    found = {}
    for path in (BUILD / 'stock/lib/modules').rglob('*.ko*'):
        found[path.name.split('.')[0].replace('-', '_')] = path
    if driver == 'ours':
        found['virtio_balloon'] = _existing(
            BUILD / 'module/virtio_balloon.ko', 'module for the stock kernel',
            'run make module')
    order: list = []

    def add(name: str) -> None:
        # What is not there as a module is built in.
        path = found.get(name.replace('-', '_'))
        if path and path not in order:
            for needed in _module_needs(path):
                add(needed)
            order.append(path)

    for name in ('virtio_pci', 'virtio_blk', 'virtio_balloon' if driver else ''):
        add(name)
    return _Kernel(image, order)


def _module_bytes(path: Path) -> bytes:
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == '.xz' else data


def _module_needs(path: Path) -> list:
    match = re.search(rb'\0depends=([^\0]*)\0', _module_bytes(path))
    return [n for n in match.group(1).decode().split(',') if n] if match else []


# A busy host is late with timer interrupts. Then a guest under TCG finds its timer
# broken (no_timer_check), or takes its time stamp counter for one that is many times
# slower, so that its seconds pass too fast (clocksource).
_TCG_APPEND = 'no_timer_check clocksource=hpet '

# TCG sometimes lets one processor run instructions that another has patched and
# everybody has been told of: the kernel meets its own breakpoint. Booting patches most.
_TCG_FAULT = 'Oops: int3'
_TCG_BOOTS = 3


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
    include = _existing(harness / 'kselftest', 'kselftest harness', 'run make tree')
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


def _module_initramfs(modules: list, load: bool, params: str) -> bytes:
    """The guest's own part: its modules, and the list of those to load."""
    cpio = _Cpio()
    lines = []
    for path in modules:
        name = path.name.split('.')[0]
        cpio.file(f'modules/{name}.ko', _module_bytes(path))
        balloon = name == 'virtio_balloon'
        if load or not balloon:
            lines.append(f'/modules/{name}.ko {params if balloon else ""}\n')
    cpio.file('modules.list', ''.join(lines).encode())
    return cpio.finish()


# Channels -------------------------------------------------------------------

class _QMP:
    """QEMU's control socket. A thread reads it, so that events have a time."""

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
                raise GuestError(f'QEMU is gone: {command} not sent') from error
            with self.changed:
                self.changed.wait_for(lambda: self.reply or self.closed, timeout)
                reply = self.reply
        if not reply:
            raise GuestError(f'QEMU is gone during {command}' if self.closed else
                             f'QEMU did not answer {command} in {timeout:g} s')
        if 'error' in reply:
            raise QMPError(command, reply['error'])
        return reply['return']


class Job:
    """A command that runs in the guest."""

    def __init__(self, agent: '_Agent', number: int, command: str) -> None:
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


class _Agent:
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


class Guest:
    """A virtual machine with a balloon. See the module's text for its use.

    kernel       name of a kernel under build/kernel, or 'stock' for the
                 distribution's
    driver       'ours', 'base' (the base tree's own) or None
    load         load the driver at boot; otherwise it waits in /modules
    params       the driver's module parameters
    mem_mib      RAM
    smp          processors
    balloon      properties of virtio-balloon-pci; None: no balloon
    devices      more -device values
    qemu_args    more QEMU arguments
    append       more of the kernel's command line
    swap_mib     a swap device of that size, in use; 0: none
    disks        image files, which become /dev/vda and so on after swap
    machine      'q35' or 'pc'
    stock        the same as kernel='stock'
    incoming     a migration stream in a file to continue, instead of a boot
    allow_splats regular expressions for complaints on the console that the
                 test expects; True: anything goes
    name         for messages
    """

    def __init__(self, kernel: str = KERNEL, driver: str | None = DRIVER, *,
                 load: bool = True, params: str = '',
                 mem_mib: int = 512, smp: int = 2,
                 balloon: str | None = 'deflate-on-oom=on,free-page-reporting=on',
                 devices: Iterable = (), qemu_args: Iterable = (),
                 append: str = '', swap_mib: int = 0, disks: Iterable = (),
                 machine: str = 'q35', stock: bool = False,
                 incoming: Any = None, allow_splats: Any = (), name: str | None = None) -> None:
        self.load = load
        self.params = params
        self.mem_mib = mem_mib
        self.smp = smp
        self.balloon = balloon
        self.devices = list(devices)
        self.qemu_args = list(qemu_args)
        self.append = append
        self.swap_mib = swap_mib
        self.disks = list(disks)
        self.machine = machine
        self.incoming = incoming
        self.allow_splats = allow_splats
        kernel = 'stock' if stock else kernel
        self.name = name or f'{kernel}/{driver}'
        self.accel = 'kvm' if kvm_usable() else 'tcg'
        self._kernel = (_stock_kernel(driver) if kernel == 'stock'
                        else _built_kernel(kernel, driver))
        self._jobs = 0
        self._console_end = ''
        self._complaints_seen = 0
        self._process: subprocess.Popen | None = None
        self._watcher: subprocess.Popen | None = None
        self._agent: Any = None
        self._qmp: Any = None
        self.dir: Path | None = None

    # Start and end

    def __enter__(self) -> 'Guest':
        qemu_path()
        for attempt in range(1, _TCG_BOOTS + 1):
            self.dir = Path(tempfile.mkdtemp(prefix='balloon-vm-'))
            try:
                self._start()
                return self
            except BaseException as error:
                self._stop()
                if (isinstance(error, GuestError) and self.accel == 'tcg'
                        and _TCG_FAULT in self.console and attempt < _TCG_BOOTS):
                    continue
                if not isinstance(error, BedError):
                    self._show_console()
                raise
        raise AssertionError('not reached')

    def __exit__(self, exc_type: Any, exc: Any, trace: Any) -> None:
        complaints = self.new_complaints()
        self._stop()
        if exc_type or complaints:
            self._show_console()
        if complaints and not exc_type:
            raise SplatError(f'{self.name}: ' + '; '.join(complaints[:5]))

    def _start(self) -> None:
        assert self.dir
        initrd = self.dir / 'initrd'
        base = base_initramfs()
        need = base.stat().st_size + 64 * MIB
        if shutil.disk_usage(self.dir).free < need:
            raise BedError(f'less than {need >> 20} MiB free in {self.dir.parent}: '
                           'make room, or point TMPDIR elsewhere')
        with open(initrd, 'wb') as out:
            out.write(base.read_bytes())
            out.write(_module_initramfs(self._kernel.modules, self.load,
                                        self.params))
        self._watcher = subprocess.Popen(
            ['/bin/sh', '-c', _WATCHER, 'watcher', str(self.dir)],
            stdin=subprocess.PIPE, start_new_session=True)
        qmp, qmp_far = socket.socketpair()
        agent, agent_far = socket.socketpair()
        with qmp_far, agent_far:
            command = self._command(initrd, qmp_far.fileno(), agent_far.fileno())
            with open(self.dir / 'qemu.log', 'wb') as log:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    pass_fds=(qmp_far.fileno(), agent_far.fileno()),
                    start_new_session=True)
        self._tell_watcher(self._process.pid)
        self._agent = _Agent(agent)
        self._qmp = _QMP(qmp)
        live.append(self)
        try:
            self.qmp('qmp_capabilities')
        except GuestError as error:
            raise BedError('QEMU did not start: ' + self._qemu_log()) from error
        if self.incoming:
            self._wait_incoming()
            return
        self._wait_boot()
        if self.swap_mib:
            self.run('mkswap /dev/vda && swapon /dev/vda')

    def _wait_boot(self) -> None:
        agent = self._agent
        with contextlib.suppress(TimeoutError):
            wait_for(lambda: agent.greeting is not None or agent.closed
                     or 'Kernel panic' in self.console, BOOT_TIMEOUT, 'boot')
        if agent.greeting is None or _TCG_FAULT in self.console:
            raise GuestError(f'{self.name} does not boot: {self._qemu_log()}')
        if agent.greeting:
            raise GuestError(f'{self.name}: module not loaded: {agent.greeting}')

    def _wait_incoming(self) -> None:
        def done() -> bool:
            status = self.qmp('query-migrate').get('status')
            if status == 'failed' or not self.alive():
                raise GuestError(f'{self.name}: {self._qemu_log()}')
            return status == 'completed'

        wait_for(done, BOOT_TIMEOUT, 'the migrated guest to arrive')
        # The agent said hello to another host.
        self._agent.greeting = ''

    def _qemu_log(self) -> str:
        assert self.dir
        return ' '.join((self.dir / 'qemu.log').read_text().split())

    def _tell_watcher(self, what: Any) -> None:
        assert self._watcher and self._watcher.stdin
        self._watcher.stdin.write(f'{what}\n'.encode())
        self._watcher.stdin.flush()

    def _stop(self) -> None:
        """End QEMU, keep the console, remove everything else."""
        if self in live:
            live.remove(self)
        if self._process:
            self._process.kill()
            self._process.wait()
        for channel in filter(None, (self._agent, self._qmp)):
            channel.sock.close()
        self._console_end = self.console
        if self._watcher:
            if not self._process:
                self._tell_watcher('none')
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
              + '\n'.join(text.splitlines()[-200:]))

    def _command(self, initrd: Path, qmp_fd: int, agent_fd: int) -> list:
        tcg = self.accel == 'tcg'
        command = [
            qemu_path(), '-nodefaults', '-no-user-config', '-display', 'none',
            '-vga', 'none', '-no-reboot',
            '-accel', 'tcg,thread=multi' if tcg else 'kvm',
            # Five page table levels cost TCG time and prove nothing here.
            '-cpu', 'max,la57=off' if tcg else 'host',
            '-machine', self.machine, '-m', str(self.mem_mib),
            '-smp', str(self.smp), '-name', self.name.replace(',', '.'),
            '-kernel', str(self._kernel.image), '-initrd', str(initrd),
            '-append', 'console=ttyS0 loglevel=7 mitigations=off panic=-1 '
                       'rcupdate.rcu_cpu_stall_timeout=60 '
                       f'{_TCG_APPEND if tcg else ""}{self.append}',
            '-chardev', f'file,id=console,path={self.dir}/console',
            '-serial', 'chardev:console',
            '-chardev', f'socket,id=agent,fd={agent_fd}',
            '-serial', 'chardev:agent',
            '-chardev', f'socket,id=qmp,fd={qmp_fd}',
            '-mon', 'chardev=qmp,mode=control',
            # Every kick and every value of `actual` that the driver writes.
            '-trace', 'virtio_queue_notify', '-trace', 'virtio_balloon_set_config',
            '-D', f'{self.dir}/trace',
        ]
        if self.balloon is not None:
            command += ['-device', ','.join(
                ('virtio-balloon-pci,id=balloon0', *filter(None, [self.balloon])))]
        for number, image in enumerate(self._swap_image() + self.disks):
            command += ['-drive', f'file={image},if=none,format=raw,id=disk{number}',
                        '-device', f'virtio-blk-pci,drive=disk{number}']
        if self.incoming:
            command += ['-incoming', f'exec:cat {self.incoming}']
        for device in self.devices:
            command += ['-device', device]
        return command + self.qemu_args

    def _swap_image(self) -> list:
        if not self.swap_mib:
            return []
        path = f'{self.dir}/swap'
        with open(path, 'wb') as image:
            image.truncate(self.swap_mib * MIB)
        return [path]

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

    def vmstat(self) -> dict:
        """/proc/vmstat."""
        return _parse_counters(self.read('/proc/vmstat'))

    def meminfo(self) -> dict:
        """/proc/meminfo, in bytes."""
        return _parse_meminfo(self.read('/proc/meminfo'))

    def debugfs(self) -> dict:
        """The driver's counters."""
        return _parse_counters(self.read('/sys/kernel/debug/virtio_balloon/*/stat'))

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
        return self.qmp('qom-get', path='/machine/peripheral/balloon0',
                        property='guest-stats')

    def stats_interval(self, seconds: int) -> None:
        """Ask the guest for statistics that often; 0: not at all."""
        self.qmp('qom-set', path='/machine/peripheral/balloon0',
                 property='guest-stats-polling-interval', value=seconds)

    # Host's view

    @property
    def pid(self) -> int:
        """QEMU's process."""
        assert self._process
        return self._process.pid

    def alive(self) -> bool:
        """Whether QEMU runs."""
        return self._process is not None and self._process.poll() is None

    def wait_exit(self, timeout: float = 60) -> int:
        """Wait for QEMU's end after a shutdown; its exit status."""
        assert self._process
        return self._process.wait(timeout)

    def host_rss(self) -> int:
        """Bytes of host memory behind the guest, QEMU's own included."""
        status = Path(f'/proc/{self.pid}/status').read_text(encoding='ascii')
        # VmRSS counts shared memory (RssShmem) as well as anonymous.
        match = re.search(r'^VmRSS:\s+(\d+) kB', status, re.M)
        if not match:
            raise GuestError(f'{self.name}: QEMU is gone')
        return int(match.group(1)) * 1024

    def host_cpu(self) -> float:
        """Seconds of processor time that QEMU took."""
        stat = Path(f'/proc/{self.pid}/stat').read_text(encoding='ascii')
        fields = stat.rsplit(')', 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')

    def _trace(self) -> str:
        if self.dir:
            with contextlib.suppress(FileNotFoundError):
                return (self.dir / 'trace').read_text(errors='replace')
        return ''

    def kicks(self) -> int:
        """Notifications that the guest sent to virtio devices so far."""
        return self._trace().count('virtio_queue_notify ')

    def actual_writes(self) -> list:
        """Every size that the driver ever told its host, in bytes given up."""
        return [int(n) * PAGE for n in
                re.findall(r'virtio_balloon_set_config .*?(\d+)', self._trace())]

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
        """What is wrong whatever the test: splats, and sizes beyond RAM."""
        found = [f'kernel complained: {line}' for line in self.splats()]
        beyond = [size for size in self.actual_writes() if size > self.mem_mib * MIB]
        return found + [f'actual is {size}, beyond RAM' for size in beyond]

    def new_complaints(self) -> list:
        """Those since the last call, for guests that several tests share."""
        found = self.complaints()
        new = found[self._complaints_seen:]
        self._complaints_seen = len(found)
        return new
