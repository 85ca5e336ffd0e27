# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""The driver comes, goes, and fails to come."""

import time

from bed import MIB, wait_for
from moves import DRIVER, balloon_pages, free_memory, resize, wait_free_memory
from qemu import Guest

#: What the kernel says when it takes away the entries of an interrupt in /proc that it
#: had no memory for.
IRQ_WITHOUT_ENTRIES = ('WARNING: .* at remove_proc_entry', 'Call Trace')

#: Everything a balloon can do at once.
ALL = {'balloon': 'deflate-on-oom=on,free-page-reporting=on,free-page-hint=on,'
                  'iothread=io0',
       'qemu_args': ('-object', 'iothread,id=io0')}


def test_rmmod_with_everything_in_flight(soak):
    """F22: removed while it inflates, reports, hints and counts."""
    with Guest(mem_mib=512, **ALL) as guest:
        guest.run('rmmod virtio_balloon')
        before = free_memory(guest)
        guest.stats_interval(1)
        churn = guest.start('memload churn 64')
        guest.qmp('migrate-set-parameters', **{'max-bandwidth': MIB})
        for turn in range(200 if soak else 8):
            guest.run('insmod /modules/virtio_balloon.ko')
            guest.target(200 if turn % 2 else 300)
            if turn % 4 == 0:
                guest.qmp('migrate', uri='exec:cat > /dev/null')
            time.sleep(turn * 37 % 10 / 100)  # each turn ends at another point
            guest.run('rmmod virtio_balloon')
            if turn % 4 == 0:
                guest.qmp('migrate_cancel')
            assert balloon_pages(guest) == 0
        churn.kill()
        churn.wait()
        wait_free_memory(guest, before)
        guest.run('insmod /modules/virtio_balloon.ko')
        resize(guest, 256)


def test_first_inflation_is_announced_once():
    """F17: a user who misses memory finds out who has it."""
    with Guest(mem_mib=512) as guest:
        assert 'first inflation' not in guest.console
        for mib in (400, 512, 300):
            resize(guest, mib)
        lines = [line for line in guest.console.splitlines()
                 if 'first inflation' in line]
        assert len(lines) == 1
        assert 'virtio_balloon virtio' in lines[0]
        state = guest.state()
        assert state.splitlines()[0] == 'at target'
        assert f"{guest.debugfs()['actual_pages'] * 4} KiB" in state


def test_every_allocation_of_probe_fails_once():
    """Whichever allocation fails, probing fails cleanly or does without."""
    with Guest(mem_mib=512, allow_splats=IRQ_WITHOUT_ENTRIES, **ALL) as guest:
        name = guest.run(f'cd {DRIVER}; ls -d virtio*').strip()
        guest.run('for f in failslab fail_page_alloc; do'
                  '  cd /sys/kernel/debug/$f; echo 0 > verbose;'
                  '  echo N > ignore-gfp-wait; done;'
                  'echo 0 > /sys/kernel/debug/fail_page_alloc/min-order')
        guest.run(f'echo {name} > {DRIVER}/unbind')
        before = free_memory(guest)
        # The shell that binds fails its Nth allocation from here on; one that
        # has some left over saw probe through.
        guest.run(
            f'cd {DRIVER}; for n in $(seq 1 500); do'
            f'  sh -c "echo $n > /proc/self/fail-nth; echo {name} > bind;'
            '          read left < /proc/self/fail-nth; echo 0 > /proc/self/fail-nth;'
            '          [ \\"\\$left\\" = 0 ]" 2> /dev/null || break;'
            f' [ ! -e {name} ] || echo {name} > unbind; done;'
            'echo $n > /tmp/failures', timeout=180)
        assert 10 < int(guest.read('/tmp/failures')) < 500
        guest.run(f'cd {DRIVER}; [ ! -e {name} ] || echo {name} > unbind')
        wait_free_memory(guest, before)
        guest.run(f'echo {name} > {DRIVER}/bind')
        resize(guest, 256)
        resize(guest, 512)


def test_inflation_while_allocations_fail():
    """A hundred page allocations in a row fail: later is soon enough."""
    with Guest(mem_mib=512) as guest:
        before = free_memory(guest)
        # Nothing else may run in the guest until the failures are used up.
        guest.run('cd /sys/kernel/debug/fail_page_alloc; echo 0 > verbose;'
                  'echo N > ignore-gfp-wait; echo 0 > min-order; echo 100 > times;'
                  'echo 100 > probability')
        guest.target(200)
        guest.wait_actual(200 * MIB, timeout=120)
        # What the driver has left over makes a few of these fail instead.
        left = 'cat /sys/kernel/debug/fail_page_alloc/times'
        wait_for(lambda: guest.try_run(left) == (0, '0\n'), 30, 'all failures to be used')
        assert balloon_pages(guest) * 4096 == 312 * MIB
        resize(guest, 512)
        wait_free_memory(guest, before)
