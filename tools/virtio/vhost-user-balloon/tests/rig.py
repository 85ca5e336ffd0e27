# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) the project's developers
"""Starts the daemon and speaks QMP to it.

    with Daemon('--test-commands') as daemon:
        with daemon.qmp() as qmp:
            qmp('balloon', value=1 << 30)

The daemon is VUB_DAEMON, or the one that make built. Its log is shown when a
test fails, and a sanitizer's finding in it fails the test.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / 'tools/testing/vm'))
# pylint: disable=wrong-import-position
from bed import BUILD, MIB, PAGE, QMPError, wait_for

DAEMON = Path(os.environ.get(
    'VUB_DAEMON', BUILD / 'vhost-user-balloon/vhost-user-balloon'))


class QMP:
    """A client: call it with a command's name and arguments."""

    def __init__(self, path, negotiate=True):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(10)
        self.sock.connect(str(path))
        self.buffer = b''
        self.events = []
        self.greeting = self.read()
        if negotiate:
            self('qmp_capabilities')

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.sock.close()

    def read(self):
        """The next message."""
        while b'\n' not in self.buffer:
            data = self.sock.recv(65536)
            if not data:
                raise EOFError('the daemon has closed its socket')
            self.buffer += data
        line, self.buffer = self.buffer.split(b'\n', 1)
        return json.loads(line)

    def answer(self):
        """The next message that is no event."""
        while True:
            message = self.read()
            if 'event' not in message:
                return message
            self.events.append((time.monotonic(), message))

    def __call__(self, command, **arguments):
        message = {'execute': command}
        if arguments:
            message['arguments'] = {k.rstrip('_'): v for k, v in arguments.items()}
        self.sock.sendall(json.dumps(message).encode())
        answer = self.answer()
        if 'error' in answer:
            raise QMPError(command, answer['error'])
        return answer['return']

    def stats(self):
        """The guest's statistics."""
        return self('qom-get', path='/machine/peripheral/balloon0',
                    property='guest-stats')

    def misbehave(self, kind, **arguments):
        """Have the daemon be a bad device."""
        return self('x-balloon-misbehave', kind=kind, **arguments)

    def device(self):
        """Counters."""
        return self('query-balloon-device')


class Daemon:
    """The daemon, with sockets in a directory of its own."""

    def __init__(self, *options, where=None, check=True):
        self.options = options
        self.where = where
        self.check = check
        self.process = None
        #: Is told the process's number before anything is waited for.
        self.started = lambda pid: None

    def __enter__(self):
        self.dir = Path(tempfile.mkdtemp(prefix='vub-', dir=self.where))
        self.socket = self.dir / 'vhost'
        self.qmp_socket = self.dir / 'qmp'
        self.log_path = self.dir / 'log'
        self.start()
        return self

    def start(self):
        """Start it, also once more."""
        with open(self.log_path, 'ab') as log:
            self.process = subprocess.Popen(
                [str(DAEMON), f'--socket-path={self.socket}',
                 f'--qmp={self.qmp_socket}', *self.options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True)
        self.started(self.process.pid)
        wait_for(lambda: self.process.poll() is not None or self.greets(),
                 20, 'the daemon to greet')

    def greets(self):
        """Whether it serves: both sockets are open before it greets."""
        try:
            with self.qmp(negotiate=False):
                return True
        except (OSError, EOFError):
            return False

    def qmp(self, negotiate=True):
        """A new client."""
        return QMP(self.qmp_socket, negotiate)

    def log(self):
        """What it said."""
        return self.log_path.read_text(errors='replace')

    def alive(self):
        """Whether it runs."""
        return self.process.poll() is None

    def memory(self):
        """Bytes of its own, not the guest's, memory."""
        status = Path(f'/proc/{self.process.pid}/status').read_text()
        fields = dict(line.split(':', 1) for line in status.splitlines())
        return int(fields['RssAnon'].split()[0]) * 1024

    def stop(self):
        """End it; its exit status."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def __exit__(self, exc_type, *exc):
        alive = self.alive()
        status = self.stop()
        log = self.log()
        if exc_type or 'Sanitizer' in log or 'runtime error' in log:
            print(f'--- log of the daemon, which ended with {status}\n{log}')
        with contextlib.suppress(OSError):
            shutil.rmtree(self.dir)
        if exc_type is None and self.check:
            assert 'Sanitizer' not in log and 'runtime error' not in log
            assert alive and status == 0, f'the daemon ended with {status}'


__all__ = ['DAEMON', 'MIB', 'PAGE', 'QMP', 'Daemon', 'QMPError', 'wait_for']
