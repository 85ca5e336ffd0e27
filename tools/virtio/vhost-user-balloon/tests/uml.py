# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) the project's developers
"""A User-Mode Linux guest with a shell that the test drives.

The initial file system has a static busybox and a script that runs commands it
finds in a directory of the host. No root, no image, a second to boot.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from rig import MIB, TOP, wait_for

KERNEL = Path(os.environ.get('VUB_UML', TOP / 'build/kernel/uml/linux'))
BOOT_TIMEOUT = 120

# Commands are files that appear whole (by rename), answers too.
INIT = '''#!/bin/busybox sh
/bin/busybox mkdir -p /bin /proc /sys /dev /host /tmp
/bin/busybox --install -s /bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t debugfs none /sys/kernel/debug
mount -t devtmpfs none /dev
mount -t tmpfs -o size=90%% none /tmp
mount -t hostfs none /host -o %(dir)s
n=1
touch /host/ready
while true; do
        if [ -e /host/command.$n ]; then
                sh /host/command.$n >/host/part.$n 2>&1
                echo $? >>/host/part.$n
                mv /host/part.$n /host/answer.$n
                n=$((n + 1))
        else
                usleep 20000
        fi
done
'''


def missing():
    """Why no guest can be booted; None if one can."""
    if not KERNEL.exists():
        return f'no UML kernel at {KERNEL}: run make kernel-uml'
    busybox = shutil.which('busybox')
    if not busybox or b'.interp\0' in Path(busybox).read_bytes():
        return 'no static busybox: apt-get install busybox-static'
    return None


def _cpio_entry(inode, name, mode, content=b'', device=(0, 0)):
    encoded = name.encode() + b'\0'
    fields = (inode, mode, 0, 0, 1, 0, len(content), 0, 0, *device,
              len(encoded), 0)
    entry = b'070701' + b''.join(b'%08X' % f for f in fields) + encoded
    entry += bytes(-len(entry) % 4) + content
    return entry + bytes(-len(entry) % 4)


def _initrd(directory):
    busybox = Path(shutil.which('busybox')).read_bytes()
    return b''.join((
        _cpio_entry(1, 'bin', 0o040755),
        _cpio_entry(2, 'dev', 0o040755),
        _cpio_entry(3, 'dev/console', 0o020600, device=(5, 1)),
        _cpio_entry(4, 'bin/busybox', 0o100755, busybox),
        _cpio_entry(5, 'init', 0o100755, (INIT % {'dir': directory}).encode()),
        _cpio_entry(6, 'TRAILER!!!', 0)))


class Uml:
    """A guest that is booted with a balloon at a socket."""

    def __init__(self, sock, mem_mib=256, append='', memory_dir='/dev/shm'):
        self.sock = sock
        self.mem_mib = mem_mib
        self.append = append
        self.memory_dir = memory_dir
        self.commands = 0

    def __enter__(self):
        self.dir = Path(tempfile.mkdtemp(prefix='vub-uml-'))
        self.memory = Path(tempfile.mkdtemp(prefix='vub-uml-', dir=self.memory_dir))
        self.start()
        return self

    def start(self):
        """Boot, and wait for the shell."""
        (self.dir / 'initrd').write_bytes(_initrd(self.dir))
        command = [str(KERNEL), f'mem={self.mem_mib}M', f'initrd={self.dir}/initrd',
                   f'virtio_uml.device={self.sock}:5', 'con=null', 'con0=null,fd:1',
                   'root=/dev/ram0', 'kunit.enable=0', 'panic=-1',
                   f'uml_dir={self.dir}/', *self.append.split()]
        with open(self.dir / 'console', 'wb') as console:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=console, stderr=console,
                env=dict(os.environ, TMPDIR=str(self.memory)), start_new_session=True)
        try:
            wait_for(lambda: (self.dir / 'ready').exists() or
                     self.process.poll() is not None, BOOT_TIMEOUT, 'boot')
            assert self.process.poll() is None, 'the guest ended'
        except BaseException:
            self.stop()
            print(self.console())
            raise

    def run(self, command, timeout=60):
        """Run a shell command; its output."""
        self.commands += 1
        path = self.dir / f'command.{self.commands}'
        part = self.dir / 'part'
        part.write_text(command + '\n')
        part.rename(path)
        answer = self.dir / f'answer.{self.commands}'
        wait_for(answer.exists, timeout, f'{command} in the guest')
        *output, status = answer.read_text().splitlines()
        assert status == '0', f'{command}: {status}: {output}'
        return '\n'.join(output)

    def free(self):
        """Bytes of free memory that the guest sees."""
        for line in self.run('cat /proc/meminfo').splitlines():
            if line.startswith('MemFree:'):
                return int(line.split()[1]) * 1024
        raise AssertionError('no MemFree')

    def used(self):
        """Bytes of host memory behind the guest's memory file."""
        for fd in Path(f'/proc/{self.process.pid}/fd').iterdir():
            try:
                if str(self.memory) in os.readlink(fd):
                    return os.stat(fd).st_blocks * 512
            except OSError:
                continue
        raise AssertionError('no memory file')

    def console(self):
        """What its kernel said."""
        return (self.dir / 'console').read_text(errors='replace')

    def kill(self):
        """End it as a crash would."""
        # UML's processes are one group, of which the first is the leader.
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def restart(self):
        """Boot it again after it was killed."""
        for path in self.dir.iterdir():
            if path.is_file():
                path.unlink()
        self.commands = 0
        self.start()

    def stop(self):
        """End it, if it runs."""
        if self.process.poll() is None:
            self.kill()

    def __exit__(self, exc_type, *exc):
        self.stop()
        if exc_type:
            print(f'--- console\n{self.console()}')
        shutil.rmtree(self.memory, ignore_errors=True)
        shutil.rmtree(self.dir, ignore_errors=True)
