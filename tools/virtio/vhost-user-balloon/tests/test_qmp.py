# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) the project's developers
"""The operators' socket, as clients made for QEMU use it; and options."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
# pylint: disable=wrong-import-position
from rig import DAEMON, MIB, Daemon, QMPError, wait_for
from vmm import RESET_DEVICE, Vmm

OPTIONS = ['--reconnect'] + (['--sandbox=off'] if 'VUB_SANITIZED' in os.environ
                             else [])
DEVICE = '/machine/peripheral/balloon0'


@pytest.fixture(name='daemon')
def a_daemon():
    """A daemon that knows how large its guest will be."""
    with Daemon(*OPTIONS, '--ram-size=1G') as daemon:
        yield daemon


def ask(client, text):
    """Send text, and get one answer."""
    client.sock.sendall(text if isinstance(text, bytes) else text.encode())
    return client.answer()


def test_greeting_and_negotiation(daemon):
    with daemon.qmp(negotiate=False) as client:
        qmp = client.greeting['QMP']
        assert qmp['capabilities'] == []
        assert set(qmp['version']['qemu']) == {'major', 'minor', 'micro'}
        answer = ask(client, '{"execute": "query-balloon"}')
        assert answer['error']['class'] == 'CommandNotFound'
        assert ask(client, '{"execute": "qmp_capabilities"}') == {'return': {}}
        answer = ask(client, '{"execute": "qmp_capabilities"}')
        assert answer['error']['class'] == 'CommandNotFound'
    with daemon.qmp(negotiate=False) as client:
        answer = ask(client, '{"execute": "qmp_capabilities", "arguments": '
                             '{"enable": ["oob"]}}')
        assert answer['error']['class'] == 'GenericError'
        assert ask(client, '{"execute": "qmp_capabilities", "arguments": '
                           '{"enable": []}}') == {'return': {}}


@pytest.mark.parametrize('id_', ('1', '-5', '"x"', '[1, {"a": null}]', 'null',
                                 '1.5', '{"a": "b"}'))
def test_id_is_echoed(daemon, id_):
    with daemon.qmp() as client:
        for command in ('query-balloon', 'no-such-command'):
            answer = ask(client, '{"execute": "%s", "id": %s}' % (command, id_))
            assert answer['id'] == json.loads(id_)
        answer = ask(client, '{"execute": "qom-get", "arguments": {"path": "%s", '
                             '"property": "guest-stats"}, "id": %s}' % (DEVICE, id_))
        assert answer['id'] == json.loads(id_) and 'stats' in answer['return']


@pytest.mark.parametrize('text', (
    'nonsense\n', '[]', '{"execute": 1}', '{"execute": "quit", "x": 1}', '{}',
    '{"execute": "query-balloon", "arguments": 5}', '}', ']', '{"a" "b"}',
    '"text"\n', '{"execute": "query-balloon", "arguments": {"x": 1}}', '{]',
    '{"execute": "balloon"}', '{"execute": "balloon", "arguments": {"value": 0}}',
    '{"execute": "balloon", "arguments": {"value": -1}}',
    '{"execute": "balloon", "arguments": {"value": "1G"}}',
    '{"execute": "balloon", "arguments": {"value": 1.5}}',
    '{"execute": "balloon", "arguments": {"value": 99999999999999999999}}',
    '{"execute": "qom-get", "arguments": {"path": 5, "property": "x"}}',
    '{"execute": "qom-get", "arguments": {"path": "balloon0"}}',
    '{"execute": "qom-get", "arguments": {"path": "balloon0", "property": "x"}}'))
def test_errors_are_errors_and_the_next_command_works(daemon, text):
    with daemon.qmp() as client:
        error = ask(client, text)['error']
        assert error['class'] == 'GenericError' and error['desc']
        assert ask(client, '{"execute": "query-balloon"}')['return']


@pytest.mark.parametrize('char', ('x', '\u00e9', '\u20ac', '\U0001f388'))
def test_errors_about_long_names_are_answered(daemon, char):
    with daemon.qmp() as client:
        # Wherever text is cut, it is in the middle of a character once.
        for length in range(200, 260):
            name = 'a' * (length % 4) + char * length
            with pytest.raises(QMPError) as error:
                client(name)
            assert error.value.error_class == 'CommandNotFound'
            with pytest.raises(QMPError):
                client('balloon', **{name: 1})
            with pytest.raises(QMPError) as error:
                client('qom-get', path=name, property='guest-stats')
            assert error.value.error_class == 'DeviceNotFound'


def test_nesting_and_length_have_bounds(daemon):
    with daemon.qmp() as client:
        client.sock.sendall(b'{"execute": ' * 6000)
        assert client.answer()['error']
    with daemon.qmp() as client:
        assert ask(client, '{"a":' + '[' * 3000 + ']' * 3000 + '}')['error']
        assert client('query-balloon')
    with daemon.qmp() as client:
        try:
            client.sock.sendall(b'{"x": "' + b'a' * 200000)
        except OSError:
            pass
        assert client.answer()['error']


def test_commands_in_pieces_and_together(daemon):
    with daemon.qmp() as client:
        for byte in b'{"execute": "query-balloon", "id": "}\\"{"}':
            client.sock.sendall(bytes([byte]))
        assert client.answer()['id'] == '}"{'
        client.sock.sendall(b'{"execute":"query-balloon","id":1}'
                            b'{"execute":"query-version","id":2}\r\n\r\n')
        assert [client.answer()['id'], client.answer()['id']] == [1, 2]


def test_balloon_before_there_is_a_guest(daemon):
    with daemon.qmp() as client:
        assert client('query-balloon') == {'actual': 1 << 30}
        assert client('balloon', value=512 * MIB) == {}
        device = client.device()
        assert device['config']['num-pages'] == 512 * MIB // 4096
        assert not device['connected']
    with Daemon(*OPTIONS) as other, other.qmp() as client:
        for command in ({'value': 1 << 29}, {}):
            with pytest.raises(QMPError) as error:
                client('balloon' if command else 'query-balloon', **command)
            assert error.value.error_class == 'DeviceNotActive'


def test_statistics_properties(daemon):
    with daemon.qmp() as client:
        stats = client.stats()
        assert stats['last-update'] == 0
        assert stats['stats']['stat-total-memory'] == 2**64 - 1
        assert len(stats['stats']) == 16
        interval = {'path': DEVICE, 'property': 'guest-stats-polling-interval'}
        assert client('qom-get', **interval) == 0
        assert client('qom-set', value=7, **interval) == {}
        assert client('qom-get', **interval) == 7
        assert client('qom-get', path='balloon0',
                      property='guest-stats-polling-interval') == 7
        for bad in (-1, 2**32, 'x'):
            with pytest.raises(QMPError):
                client('qom-set', value=bad, **interval)
        with pytest.raises(QMPError) as error:
            client('qom-get', path='/machine/peripheral/other', property='x')
        assert error.value.error_class == 'DeviceNotFound'


def test_query_commands_is_complete(daemon):
    with daemon.qmp() as client:
        names = {c['name'] for c in client('query-commands')}
        assert names >= {'qmp_capabilities', 'balloon', 'query-balloon', 'qom-get',
                         'qom-set', 'query-commands', 'query-version', 'quit',
                         'query-balloon-device'}
        assert 'x-balloon-misbehave' not in names


def test_events_come_at_most_once_a_second_and_the_last_one_comes():
    """With the time of the change, not that of the telling."""
    with Daemon(*OPTIONS) as daemon:
        with daemon.qmp() as first, daemon.qmp() as second:
            with daemon.qmp(negotiate=False) as deaf, Vmm(daemon.socket) as vmm:
                vmm.negotiate()
                assert vmm.mem_table()
                begin = time.monotonic()
                pages = 0
                while time.monotonic() - begin < 2.5:
                    pages += 1
                    vmm.set_actual(pages)
                    time.sleep(0.002)
                last = vmm.size - pages * 4096
                with daemon.qmp() as other:
                    wait_for(lambda: other('query-balloon')['actual'] == last, 5,
                             'the last change')
                changed = time.time()
                for client in (first, second):
                    events = []
                    while not events or events[-1]['data']['actual'] != last:
                        message = client.read()
                        assert message['event'] == 'BALLOON_CHANGE'
                        events.append(message)
                    assert 3 <= len(events) <= 5
                    stamps = [e['timestamp']['seconds'] +
                              e['timestamp']['microseconds'] / 1e6 for e in events]
                    assert stamps == sorted(stamps) and stamps[-1] <= changed
                deaf.sock.settimeout(0.1)
                with pytest.raises(socket.timeout):
                    deaf.read()


def changes(client, last):
    """What events say up to the last one, which no other one follows."""
    actual = []
    while not actual or actual[-1] != last:
        actual.append(client.read()['data']['actual'])
    client.sock.settimeout(1.2)
    with pytest.raises(socket.timeout):
        client.read()
    return actual


@pytest.mark.parametrize('pause', (0, 2.2))
@pytest.mark.parametrize('end', (lambda vmm: vmm.tell(RESET_DEVICE), Vmm.close))
def test_the_change_by_a_reset_is_told(end, pause):
    with Daemon(*OPTIONS) as daemon, daemon.qmp() as client:
        with Vmm(daemon.socket) as vmm:
            vmm.negotiate()
            assert vmm.mem_table()
            size = vmm.size
            for pages in (100, 200):
                vmm.set_actual(pages)
            # Without a pause the second one still waits when the guest goes.
            time.sleep(pause)
            told = [size - pages * 4096 for pages in (100, 200)]
            end(vmm)
            seen = changes(client, size)
            # A slow machine may have had the time to tell it.
            assert seen == [*told, size] or not pause and seen == [told[0], size]


def test_a_client_that_does_not_read_is_disconnected(daemon):
    with daemon.qmp() as client, daemon.qmp() as other:
        command = b'{"execute": "query-balloon-device"}' * 100
        with pytest.raises(OSError):
            for _ in range(200):
                client.sock.sendall(command)
        assert other('query-balloon')


def test_clients_come_and_go(daemon):
    for _ in range(30):
        client = daemon.qmp(negotiate=False)
        client.sock.sendall(b'{"execute": "qmp_')
        client.sock.close()
    crowd = [daemon.qmp() for _ in range(10)]
    assert all(client('query-balloon') for client in crowd)
    for client in crowd:
        client.sock.close()


def test_quit(daemon):
    daemon.check = False
    with daemon.qmp() as client:
        assert client('quit') == {}
    assert daemon.process.wait(10) == 0
    with pytest.raises(ConnectionRefusedError):
        daemon.qmp()


# Options ---------------------------------------------------------------------

def run(*options):
    """Run the daemon with options that end it at once."""
    return subprocess.run([DAEMON, *options], capture_output=True, text=True,
                          timeout=20, check=False)


def test_print_capabilities():
    result = run('--print-capabilities')
    assert result.returncode == 0
    assert json.loads(result.stdout)['type'] == 'balloon'


def test_help_and_version():
    for option in ('--help', '--version'):
        result = run(option)
        assert result.returncode == 0 and 'vhost-user-balloon' in result.stdout


@pytest.mark.parametrize('options', (
    [], ['--qmp=x'], ['--socket-path=x', '--fd=3'], ['--socket-path=x', 'y'],
    ['--socket-path=x', '--stats=maybe'], ['--socket-path=x', '--ram-size=0'],
    ['--socket-path=x', '--ram-size=1X'], ['--socket-path=x', '--ram-size=-1'],
    ['--socket-path=x', '--ram-size=100'], ['--socket-path=x', '--ram-size=999T'],
    ['--socket-path=x', '--poll-interval=x'], ['--fd=x'], ['--fd=-1'],
    ['--socket-path=x', '--log-level=loud'], ['--no-such-option'],
    ['--socket-path=x', '--release=some'], ['--socket-path=x', '--id=a/b'],
    ['--socket-path=x', '--release-grain=3K'], ['--socket-path=' + 'x' * 200]))
def test_wrong_options_are_explained(options, tmp_path):
    result = subprocess.run([DAEMON, *options], capture_output=True, text=True,
                            timeout=20, check=False, cwd=tmp_path)
    assert result.returncode == 1
    assert len(result.stderr.splitlines()) in (1, 2)
    assert not list(tmp_path.iterdir())
