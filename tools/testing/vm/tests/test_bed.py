# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""The bed itself: what it says when something is missing, what it leaves behind."""

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import bed
import pytest
from bed import BedError, GuestError, GuestTimeout, SplatError, wait_for
from qemu import Guest


def one_line(error: Exception) -> str:
    """The error's text, which must be one line."""
    assert '\n' not in str(error)
    return str(error)


def test_no_qemu(monkeypatch):
    """Without QEMU: one line that names the package."""
    monkeypatch.setenv('PATH', '/nowhere')
    with pytest.raises(BedError) as info:
        with Guest():
            pass
    assert 'apt-get install qemu-system-x86' in one_line(info.value)


def test_no_kernel(monkeypatch, tmp_path):
    """Without a kernel: one line that names the file and the command."""
    monkeypatch.setattr(bed, 'BUILD', tmp_path)
    with pytest.raises(BedError) as info:
        Guest(kernel='x86')
    assert str(tmp_path) in one_line(info.value)
    assert 'make' in one_line(info.value)


def test_no_space(monkeypatch):
    """Without room for the guest's files: one line that names the place."""
    monkeypatch.setattr(bed.shutil, 'disk_usage',
                        lambda path: SimpleNamespace(free=0))
    with pytest.raises(BedError) as info:
        with Guest():
            pass
    assert 'TMPDIR' in one_line(info.value)


def test_qemu_refuses():
    """What QEMU says about its arguments reaches the user."""
    with pytest.raises(BedError) as info:
        with Guest(balloon='no-such-property=on'):
            pass
    assert 'no-such-property' in one_line(info.value)


def test_commands_and_complaints():
    """Exit statuses, output as it was, time limits, and splats that are seen."""
    with pytest.raises(SplatError):
        with Guest(mem_mib=256, smp=1) as guest:
            assert guest.try_run('exit 3') == (3, '')
            assert guest.try_run('kill -9 $$')[0] == 128 + 9
            with pytest.raises(GuestError):
                guest.run('false')
            with pytest.raises(GuestTimeout):
                guest.run('sleep 1000', timeout=0.5)
            job = guest.start(r"printf '\000\377\n\r\021'; exit 1")
            assert job.wait()[0] == 1
            assert job.raw == b'\0\xff\n\r\x11'
            assert not guest.splats()
            guest.run('echo "BUG: not really" > /dev/kmsg')


@pytest.mark.parametrize('signum', [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_left_behind(signum):
    """Whatever ends a test process ends its guest and removes its files."""
    # A shell's background jobs ignore SIGINT, and so do their children.
    code = textwrap.dedent(f'''
        import signal, sys, time
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.path.insert(0, {str(Path(bed.__file__).parent)!r})
        import bed, qemu
        from pathlib import Path
        bed.BUILD = Path({str(bed.BUILD)!r})
        with qemu.Guest(mem_mib=256, smp=1) as guest:
            print(guest.pid, guest.dir, flush=True)
            time.sleep(600)
    ''')
    with subprocess.Popen([sys.executable, '-c', code], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as test:
        assert test.stdout
        line = test.stdout.readline().split()
        assert line, 'the guest did not start'
        pid, directory = int(line[0]), Path(line[1])
        assert directory.exists()
        test.send_signal(signum)
        test.wait(30)
    wait_for(lambda: not directory.exists(), 10, 'the files to be removed')

    def gone() -> bool:
        try:
            stat = Path(f'/proc/{pid}/stat').read_text(encoding='ascii')
        except FileNotFoundError:
            return True
        return stat.rsplit(')', 1)[1].split()[0] == 'Z'

    wait_for(gone, 10, 'QEMU to end')


def test_wait_for_says_what():
    """A wait that fails names what it waited for."""
    start = time.monotonic()
    with pytest.raises(TimeoutError, match='the impossible'):
        wait_for(lambda: False, 0.2, 'the impossible')
    assert time.monotonic() - start < 5
