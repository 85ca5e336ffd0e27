# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""Suspend and hibernation with memory in the balloon."""

import contextlib
import tempfile
from pathlib import Path
from typing import Iterator

import pytest
from bed import MIB
from moves import (balloon_pages, free_memory, rebind, resize, wait_after_sleep,
                   wait_free_memory)
from qemu import Guest


@pytest.mark.parametrize('oom', ['on', 'off'])
def test_suspend(oom):
    """Each level of the kernel's own test; the balloon is as before after it, or as it was
    on its way to be."""
    with Guest(mem_mib=512, balloon=f'deflate-on-oom={oom}') as guest:
        before = free_memory(guest)
        resize(guest, 256)
        guest.run('echo 0 > /sys/module/suspend/parameters/pm_test_delay')
        for level, mib in (('freezer', 256), ('devices', 256), ('devices', 400),
                           ('platform', 200)):
            guest.target(mib)
            guest.run(f'echo {level} > /sys/power/pm_test;'
                      'echo mem > /sys/power/state', timeout=60)
            wait_after_sleep(guest, mib)
        guest.target(300)
        guest.wait_actual(300 * MIB)
        resize(guest, 512)
        wait_free_memory(guest, before)


@contextlib.contextmanager
def hibernated() -> Iterator[dict]:
    """A guest that hibernated with 256 MiB in its balloon; yields what boots it again."""
    with tempfile.TemporaryDirectory(prefix='balloon-vm-') as where:
        disk = Path(where) / 'disk'
        with open(disk, 'wb') as image:
            image.truncate(512 * MIB)
        config: dict = {'mem_mib': 512, 'disks': (disk,)}
        with Guest(**config) as guest:
            resize(guest, 256)
            guest.run('mkswap /dev/vda; swapon /dev/vda;'
                      'head -c 16777216 /dev/urandom > /tmp/data;'
                      'sha256sum /tmp/data > /tmp/sum')
            guest.run('echo 0 > /sys/module/suspend/parameters/pm_test_delay;'
                      'echo shutdown > /sys/power/disk')
            guest.start('echo disk > /sys/power/state')
            guest.wait_exit(120)
        yield {'append': 'resume=/dev/vda', **config}


def test_hibernation_and_restore():
    """Written to disk and restored into another QEMU, which starts from nothing."""
    with hibernated() as config, Guest(**config) as guest:
        guest.run('sha256sum -c /tmp/sum')
        # The new host wants nothing yet, so the memory comes back.
        guest.wait_actual(512 * MIB)
        assert balloon_pages(guest) == 0
        resize(guest, 256)
        resize(guest, 512)


def test_restored_where_a_feature_is_missing():
    """A host that means something else is not talked to until it is asked anew."""
    with hibernated() as config, Guest(balloon='free-page-reporting=on', **config) as guest:
        guest.wait_console('virtio_balloon virtio[0-9]+: the host does not offer features 0x4',
                           30)
        guest.run('sha256sum -c /tmp/sum')
        assert balloon_pages(guest) == 0
        # A sleep that it does come back from starts it again.
        guest.run('echo devices > /sys/power/pm_test; echo mem > /sys/power/state || true',
                  timeout=60)
        rebind(guest)
        resize(guest, 256)
        resize(guest, 512)
