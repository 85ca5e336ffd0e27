# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""Free page reporting: freed memory goes back to the host unasked."""

import re

import pytest
from bed import MIB, Machine, wait_for
from qemu import Guest
from uml import UmlGuest

#: With page poisoning the host must keep what it frees poisoned, and can only
#: when it is told the pattern.
POISONED = 'init_on_free=1'


def use_and_free(guest: Machine, mib: int) -> int:
    """Fill memory and free it; the host's memory while it was in use."""
    guest.run(f'dd if=/dev/zero of=/tmp/used bs=1M count={mib}', timeout=120)
    peak = guest.host_rss()
    guest.run('rm /tmp/used')
    assert peak > mib * MIB
    return peak


def test_freed_memory_reaches_host(boot):
    """What a program used is the host's again soon after its end."""
    with boot(mem_mib=1024, balloon='free-page-reporting=on') as guest:
        peak = use_and_free(guest, 512)
        # A guest's only processor keeps up to an eighth of RAM on its own lists.
        expected = (448 - (1024 // 8 if boot is UmlGuest else 0)) * MIB
        wait_for(lambda: guest.host_rss() < peak - expected, 60,
                 'freed memory to reach the host')


def test_poison_without_its_bit_turns_reporting_off():
    """F18: nothing is reported, and one line says why and what to do."""
    with Guest(mem_mib=512, append=POISONED,
               balloon='free-page-reporting=on,page-poison=off') as guest:
        pattern = r'virtio_balloon virtio\d+: .*poison.*'
        line = guest.wait_console(pattern, 10).group()
        assert 'report' in line
        assert len(re.findall(pattern, guest.console)) == 1
        assert ' off' in line or 'disabled' in line


@pytest.mark.long
def test_poison_with_its_bit_reports():
    """The same guest with page-poison: reporting works."""
    with Guest(mem_mib=512, append=POISONED,
               balloon='free-page-reporting=on,page-poison=on') as guest:
        # Booting cleared all memory, so the host has to get that back first.
        for _ in range(2):
            wait_for(lambda: guest.host_rss() < 320 * MIB, 60,
                     'freed memory to reach the host')
            assert use_and_free(guest, 300) > 330 * MIB
