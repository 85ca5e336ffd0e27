#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""Guests whose balloon is vhost-user-balloon, whatever runs them."""

import contextlib
import os
import socket
import sys
from pathlib import Path
from typing import Any, Iterable

from bed import QMP, ROOT, GuestError, Machine

sys.path.insert(0, str(ROOT / 'tools/virtio/vhost-user-balloon/tests'))
# pylint: disable=wrong-import-position
from rig import Daemon

#: What QEMU's virtio-balloon-pci does where it is told nothing.
_QEMU_DEFAULTS = ('deflate-on-oom=off', 'free-page-reporting=off', 'free-page-hint=off',
                  'page-poison=on')


class VhostMachine(Machine):
    """The part of a guest that is its daemon.

    Targets, statistics and events are those of the daemon's QMP socket. Options are
    given as properties of QEMU's virtio-balloon-pci, with its defaults; more options
    may follow.
    """

    options: list
    daemon: Any = None

    def _set_options(self, balloon: str, options: Iterable) -> None:
        self.options = [f'--{feature}' for feature in
                        (*_QEMU_DEFAULTS, *filter(None, balloon.split(',')))]
        self.options += options

    def _start_daemon(self) -> None:
        """Start it; it listens before the guest starts, which connects at once."""
        self.daemon = Daemon('--reconnect', '--test-commands',
                             f'--ram-size={self.mem_mib}M', *self.options, where=self.dir)
        self.daemon.started = self._tell_watcher
        # It ends with the guest, not with a block.
        self.daemon.__enter__()

    def _open_qmp(self) -> None:
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(str(self.daemon.qmp_socket))
        self._qmp = QMP(sock)
        self.qmp('qmp_capabilities')

    def _host_log(self) -> str:
        return self.daemon.log() if self.daemon and self.dir else ''

    def _end(self) -> None:
        super()._end()
        if self.daemon:
            self.daemon.stop()

    def lose_daemon(self) -> None:
        """End the daemon as a crash would; there is no operator's view any more."""
        self.daemon.process.kill()
        self.daemon.process.wait()
        self.daemon = None

    def device(self) -> dict:
        """The device's counters."""
        return self.qmp('query-balloon-device')

    def misbehave(self, kind: str, **arguments: Any) -> None:
        """Have the host be a bad one."""
        self.qmp('x-balloon-misbehave', kind=kind, **arguments)

    def _is_memory(self, name: str) -> bool:
        """Whether the guest's memory is the file of that name."""
        raise NotImplementedError

    def memory_file(self) -> Path:
        """The guest's memory, by a name that can be opened."""
        for fd in Path(f'/proc/{self.pid}/fd').iterdir():
            with contextlib.suppress(FileNotFoundError):
                if self._is_memory(os.readlink(fd)):
                    return fd
        raise GuestError(f'{self.name} has no memory file')

    def host_rss(self) -> int:
        """Bytes of host memory behind the guest: those of its memory file."""
        return self.memory_file().stat().st_blocks * 512

    def kicks(self) -> int:
        """Notifications that the guest sent to its balloon so far."""
        return sum(queue['kicks'] for queue in self.device()['queues'])

    def complaints(self) -> list:
        """What is wrong whatever the test: splats, and sizes beyond RAM."""
        found = super().complaints()
        if self.daemon and not self.daemon.alive():
            found.append(f'the daemon ended: {self._host_log()}')
        elif self.daemon and self._qmp:
            found += ['actual beyond RAM'] * self.device()['rejects']['actual']
        return found
