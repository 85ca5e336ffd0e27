#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""Guests in QEMU with vhost-user-balloon for a host.

That takes a QEMU of 10.2 or newer: the system's, or the one that make qemu-next gets.
"""

import functools
import shutil
import subprocess
from pathlib import Path
from typing import Any, Iterable

from bed import BUILD, BedError
from qemu import QEMU, Guest
from vhost import VhostMachine

#: QEMU's side of a vhost-user device of which QEMU knows nothing but the numbers.
DEVICE = 'vhost-user-test-device-pci'
VIRTIO_ID_BALLOON = 5
CONFIG_SIZE = 16
#: For all features at once. Those that the guest does not use are set up in vain.
QUEUES = 5


@functools.cache
def qemu_next_path() -> str:
    """Where a QEMU is that has DEVICE."""
    for path in filter(None, (shutil.which(QEMU), shutil.which(BUILD / 'qemu-next' / QEMU))):
        # The exit status is 0 for any device.
        answer = subprocess.run([path, '-device', f'{DEVICE},help'], text=True,
                                stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if answer.stdout.startswith(f'{DEVICE} options:'):
            return str(path)
    raise BedError(f'no QEMU has {DEVICE}, which came with 10.2: run make qemu-next')


class VhostGuest(VhostMachine, Guest):
    """A virtual machine as qemu.Guest, with vhost-user-balloon for its balloon.

    options      more options of vhost-user-balloon
    ring_size    entries of each of its rings
    """

    def __init__(self, *args: Any, mem_mib: int = 512,
                 balloon: str = 'deflate-on-oom=on,free-page-reporting=on',
                 options: Iterable = (), ring_size: int = 128, **kwargs: Any) -> None:
        super().__init__(*args, mem_mib=mem_mib, balloon=None,
                         machine='q35,memory-backend=mem', qemu=qemu_next_path(), **kwargs)
        self.ring_size = ring_size
        self._set_options(balloon, options)

    def _start(self) -> None:
        super()._start()
        # QEMU's own, which told whether it started, has no balloon.
        self._qmp.sock.close()
        self._open_qmp()

    def _watch(self) -> None:
        super()._watch()
        self._start_daemon()

    def _command(self, initrd: Path, qmp_fd: int, agent_fd: int) -> list:
        return super()._command(initrd, qmp_fd, agent_fd) + [
            '-object', f'memory-backend-memfd,id=mem,size={self.mem_mib}M,share=on',
            '-chardev', f'socket,id=balloon,path={self.daemon.socket}',
            '-device', f'{DEVICE},chardev=balloon,virtio-id={VIRTIO_ID_BALLOON},'
                       f'num_vqs={QUEUES},vq_size={self.ring_size},config_size={CONFIG_SIZE}']

    def _host_log(self) -> str:
        return Guest._host_log(self) + VhostMachine._host_log(self)

    def _is_memory(self, name: str) -> bool:
        return name.startswith('/memfd:memory-backend')
