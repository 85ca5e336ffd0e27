# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""Free page hints: a migration need not send what the guest does not use."""

import tempfile
from pathlib import Path

import pytest
from bed import MIB, wait_for
from moves import free_memory, wait_free_memory
from qemu import Guest

HINTING = {'balloon': 'free-page-hint=on,iothread=io0,deflate-on-oom=on',
           'qemu_args': ('-object', 'iothread,id=io0')}

#: Bytes a second that no migration is held back by.
FAST = 2**40


@pytest.fixture(name='guest')
def hinting_guest():
    """A guest most of whose memory was used once and is free."""
    with Guest(mem_mib=512, **HINTING) as guest:
        guest.run('memload hog 300 0')
        yield guest


def migrate(guest: Guest, uri: str, bandwidth: int = FAST) -> None:
    """Start a migration."""
    guest.qmp('migrate-set-parameters', **{'max-bandwidth': bandwidth})
    guest.qmp('migrate', uri=uri)


def wait_hinted(guest: Guest) -> None:
    """Wait until the guest has named all its free memory."""
    last = 0

    def all_named() -> bool:
        nonlocal last
        stat = guest.debugfs()
        before, last = last, stat['hint_offered_blocks'] + stat['hint_taken_blocks']
        return last and last == before

    wait_for(all_named, 60, 'the hints', interval=0.5)


def wait_migrated(guest: Guest) -> dict:
    """Wait for its end; what QEMU says about it."""
    def ended() -> dict | None:
        info = guest.qmp('query-migrate')
        return info if info['status'] in ('completed', 'failed', 'cancelled') else None

    return wait_for(ended, 120, 'the migration to end')


def test_hints_save_transfer_and_return(guest):
    """Three migrations in a row: each sends little, and all memory comes back."""
    before = free_memory(guest)
    for _ in range(3):
        # Pages are sent when the hints are there, however slow this machine is.
        migrate(guest, 'exec:cat > /dev/null', bandwidth=MIB)
        wait_hinted(guest)
        guest.qmp('migrate-set-parameters', **{'max-bandwidth': FAST})
        info = wait_migrated(guest)
        assert info['status'] == 'completed'
        assert info['ram']['transferred'] < 250 * MIB
        guest.qmp('cont')
        wait_free_memory(guest, before)
    assert guest.vmstat()['oom_kill'] == 0


def test_cancelled_migration(guest):
    """Cancelled half way: hints stop, and all memory comes back."""
    before = free_memory(guest)
    for _ in range(3):
        migrate(guest, 'exec:cat > /dev/null', bandwidth=MIB)
        wait_for(lambda: guest.qmp('query-migrate').get('status') == 'active', 30,
                 'the migration to start')
        guest.qmp('migrate_cancel')
        assert wait_migrated(guest)['status'] == 'cancelled'
        wait_free_memory(guest, before)


def test_memory_wins_over_hints(guest):
    """Hint pages are given back when the guest needs memory meanwhile."""
    migrate(guest, 'exec:cat > /dev/null', bandwidth=MIB)
    wait_for(lambda: guest.qmp('query-migrate').get('status') == 'active', 30,
             'the migration to start')
    guest.run('memload hog 350 0', timeout=120)
    assert guest.vmstat()['oom_kill'] == 0
    guest.qmp('migrate_cancel')
    wait_migrated(guest)


def test_contents_survive_migration(guest):
    """What is in use arrives whole at the other host."""
    guest.run('head -c 16777216 /dev/urandom > /tmp/data')
    digest = guest.run('sha256sum /tmp/data')
    with tempfile.TemporaryDirectory(prefix='balloon-vm-') as where:
        stream = Path(where) / 'stream'
        # Programs come and go while the hints are given.
        churn = guest.start('memload churn 64')
        # All is sent once and, with the guest stopped, what changed meanwhile. More
        # rounds would not do: under TCG (QEMU 7.2) writes of a running guest get lost
        # in them, with hints or without.
        guest.qmp('migrate-set-parameters', **{'downtime-limit': 1000 * 1000})
        migrate(guest, f'exec:cat > {stream}')
        assert wait_migrated(guest)['status'] == 'completed'
        with Guest(mem_mib=512, incoming=stream, **HINTING) as arrived:
            assert arrived.run('sha256sum /tmp/data', timeout=120) == digest
            arrived.run('killall memload; memload hog 300 0')
            arrived.target(300)
            arrived.wait_actual(300 * MIB)
    assert not churn.done()
