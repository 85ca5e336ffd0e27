# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""Who gets the memory when the guest runs out of it."""

import pytest
from bed import MIB
from moves import balloon_pages, resize
from qemu import Guest
from uml import UmlGuest

#: What the OOM killer says about itself, and what its victim may.
OOM_REPORT = ('Call Trace', 'memload: page allocation failure')


@pytest.mark.long
def test_deflates_on_oom(boot):
    """A program that needs what the balloon holds gets it; nobody is killed."""
    # Under KASAN each page takes long.
    mem, keep, hog = (320, 140, 150) if boot is UmlGuest else (512, 180, 280)
    with boot(mem_mib=mem, balloon='deflate-on-oom=on') as guest:
        resize(guest, keep)
        total = guest.meminfo()['MemTotal']
        guest.run(f'memload hog {hog} 0', timeout=180)
        assert guest.vmstat()['oom_kill'] == 0
        assert guest.actual() > hog * MIB
        counters = guest.debugfs()
        assert counters['oom_calls'] > 0 and counters['oom_pages'] > 0
        assert guest.meminfo()['MemTotal'] == total
        resize(guest, mem)
        assert balloon_pages(guest) == 0


def test_oom_killer_without_it(boot):
    """Without the feature the memory is the host's: the hog is killed."""
    with boot(mem_mib=512, balloon='deflate-on-oom=off',
              allow_splats=OOM_REPORT) as guest:
        resize(guest, 160)
        status, _ = guest.try_run('memload hog 400 0', timeout=120)
        assert status == 128 + 9
        assert guest.vmstat()['oom_kill'] == 1
        assert guest.actual() == 160 * MIB
        assert balloon_pages(guest) * 4096 == 352 * MIB


def test_cgroup_limit_is_not_oom():
    """A cgroup at its own limit takes nothing from the balloon."""
    with Guest(mem_mib=512, balloon='deflate-on-oom=on',
               allow_splats=OOM_REPORT) as guest:
        resize(guest, 300)
        guest.run('cd /sys/fs/cgroup; echo +memory > cgroup.subtree_control;'
                  'mkdir small; echo 16777216 > small/memory.max')
        status, _ = guest.try_run(
            'echo $$ > /sys/fs/cgroup/small/cgroup.procs; exec memload hog 64 0')
        assert status == 128 + 9
        assert guest.actual() == 300 * MIB


def test_page_cache_is_not_oom():
    """F7: a file larger than what is left is read without any deflation."""
    with Guest(mem_mib=512, balloon='deflate-on-oom=on', swap_mib=400) as guest:
        resize(guest, 200)
        before = guest.vmstat()
        guest.run('swapoff /dev/vda; cat /dev/vda > /dev/null', timeout=180)
        after = guest.vmstat()
        assert after['balloon_deflate'] == before['balloon_deflate']
        assert after['pgsteal_kswapd'] + after['pgsteal_direct'] > \
            before['pgsteal_kswapd'] + before['pgsteal_direct']
