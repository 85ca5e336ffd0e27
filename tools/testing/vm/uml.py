#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""Guests of User-Mode Linux, with vhost-user-balloon for a host.

A guest's kernel is a program here: it boots in a second and runs at native speed,
and its memory is a file, which the daemon frees piece by piece.
"""

import contextlib
import os
import socket
import tempfile
from pathlib import Path
from typing import Any, Iterable

from bed import (BUILD, DRIVER, MIB, Agent, BedError, Machine, built_kernel, existing,
                 live)
from vhost import VhostMachine

#: The kernel that is tested has KASAN, and our driver built in. One that takes the
#: base's driver too, and is faster, is uml-bench.
KERNEL = os.environ.get('BALLOON_UML_KERNEL', 'uml')

#: Where memory files are, if it is a tmpfs and has room. Otherwise, and for huge
#: pages, a guest gets a tmpfs that nobody else sees and that ends with it.
SHM = '/dev/shm'
_OWN_TMPFS = 'mount -t tmpfs -o "$1" tmpfs "$2" && shift 2 && exec "$@"'


def _is_modular(kernel: str) -> bool:
    config = BUILD / 'kernel' / kernel / '.config'
    return 'CONFIG_MODULES=y' in config.read_text(encoding='ascii')


def _shm_has(mib: int) -> bool:
    """Whether a memory file of that size can be in SHM."""
    with contextlib.suppress(OSError):
        with open('/proc/mounts', encoding='utf-8') as mounts:
            kinds = [line.split()[2] for line in mounts if line.split()[1] == SHM]
        status = os.statvfs(SHM)
        return (kinds[-1:] == ['tmpfs'] and not status.f_flag & os.ST_NOEXEC
                and os.access(SHM, os.W_OK)
                and status.f_bavail * status.f_frsize > (mib + 64) * MIB)
    return False


class UmlGuest(VhostMachine):
    """A User-Mode Linux guest and its balloon device.

    kernel       name of a kernel under build/kernel
    driver       as for qemu.Guest; a kernel without modules has ours built in
    params       the driver's module parameters
    mem_mib      RAM
    backed       as for qemu.Guest
    balloon      properties as QEMU's virtio-balloon-pci has them, with its defaults;
                 they are options of vhost-user-balloon too
    options      more options of vhost-user-balloon
    append       more of the kernel's command line
    huge         have the guest's memory in huge pages: always, never, within_size;
                 None: as the host has it
    allow_splats as for qemu.Guest
    name         for messages
    """

    def __init__(self, kernel: str = KERNEL, driver: str | None = DRIVER, *,
                 params: str = '', mem_mib: int = 512, backed: bool = False,
                 balloon: str = 'deflate-on-oom=on,free-page-reporting=on',
                 options: Iterable = (), append: str = '', huge: str | None = None,
                 allow_splats: Any = (), name: str | None = None) -> None:
        super().__init__(name or f'{kernel}/{driver}', mem_mib, allow_splats)
        self.params = params
        self.backed = backed
        self._set_options(balloon, options)
        self.append = append
        self.huge = huge
        self.accel = 'native'
        existing(BUILD / 'kernel' / kernel / 'linux', f'kernel {kernel}',
                 'run make kernels' if kernel == 'uml' else 'run make demo BED=uml')
        self._modular = _is_modular(kernel)
        if not self._modular and driver != 'ours':
            raise BedError(f'kernel {kernel} has our driver built in and takes no other: '
                           'set BALLOON_UML_KERNEL=uml-bench')
        self._kernel = built_kernel(kernel, driver if self._modular else None, 'linux')
        self._own_tmpfs = huge is not None or not _shm_has(mem_mib)

    def _memory(self) -> Path:
        """Where the memory file is."""
        assert self.dir
        return self.dir / 'memory'

    def _scratch(self) -> str:
        return tempfile.gettempdir() if self._own_tmpfs else SHM

    def _start(self) -> None:
        self._write_initrd(self._kernel.modules, True, self.params)
        self._watch()
        self._start_daemon()
        self._open_qmp()
        self.boot()

    def boot(self) -> None:
        """Boot; also again, after kill()."""
        memory = self._memory()
        memory.mkdir(exist_ok=True)
        agent, agent_far = socket.socketpair()
        with agent_far:
            command = self._command(agent_far.fileno())
            if self._own_tmpfs:
                options = f'size={self.mem_mib + 2048}M,huge={self.huge or "never"}'
                command = ['unshare', '--mount', '--propagation', 'private',
                           *([] if os.geteuid() == 0 else ['--map-root-user']),
                           'sh', '-c', _OWN_TMPFS, 'sh', options, str(memory), *command]
            self._process = self._launch(
                command, 'console', (agent_far.fileno(),),
                {**os.environ, 'TMPDIR': str(memory)})
        self._agent = Agent(agent)
        live.append(self)
        self._wait_boot()
        if self.backed:
            self.back()

    def back(self) -> None:
        """Have the host back the guest's memory. By itself the guest would do it at the
        pace of page faults."""
        size = self.mem_mib * MIB
        with open(self.memory_file(), 'r+b') as memory:
            os.posix_fallocate(memory.fileno(), os.fstat(memory.fileno()).st_size - size, size)

    def _command(self, agent_fd: int) -> list:
        command = [
            str(self._kernel.image), f'mem={self.mem_mib}M', f'initrd={self.dir}/initrd',
            f'virtio_uml.device={self.daemon.socket}:5', f'uml_dir={self.dir}/',
            'con=null', 'con0=null,fd:1', 'ssl=null', f'ssl1=fd:{agent_fd}',
            'root=/dev/ram0', 'kunit.enable=0', 'panic=-1', 'loglevel=7']
        if not self._modular:
            command += [f'virtio_balloon.{param}' for param in self.params.split()]
        return command + self.append.split()

    def kill(self) -> None:
        """End the guest as a crash would; the daemon waits for the next."""
        Machine._end(self)
        self._agent.sock.close()
        live.remove(self)

    def _is_memory(self, name: str) -> bool:
        return name.startswith(f'{self._memory()}/')
