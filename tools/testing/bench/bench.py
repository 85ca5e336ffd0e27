# SPDX-License-Identifier: GPL-2.0
# Copyright (C) the project's developers
"""What the demo and the benchmarks share: resizes that the host times, what a figure
depends on, and plots."""

import datetime
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'vm'))

# pylint: disable=wrong-import-position
from bed import (BUILD, MIB, BedError, GuestError, Machine, QMPError, SplatError,
                 existing, host_available, wait_for)
from qemu import Guest, qemu_path
from uml import UmlGuest

#: Drivers that are compared, in the order of every table and plot.
DRIVERS = ('base', 'ours')
NAMES = {'base': "base's own driver", 'ours': 'our driver'}

#: What runs guests, and the kernel that measures there.
BEDS = {'qemu': (Guest, 'x86'), 'uml': (UmlGuest, 'uml-bench')}
UML_HOST = 'User-Mode Linux, vhost-user-balloon'

#: What every plot starts with. Times and colours mean the same in all of them.
PLOT_STYLE = '''
set encoding utf8
set border 3 linecolor rgb '#808080'
set tics nomirror textcolor rgb '#404040'
set grid linecolor rgb '#e0e0e0' linetype 1
'''
COLOURS = {'base': '#b0622a', 'ours': '#1f6fb4'}


def ask(guest: Machine, mib: int) -> Callable[[], float | None]:
    """Set a target; what is returned tells the seconds from then until the guest had
    reached it, or None as long as that is not known.

    The host stamps BALLOON_CHANGE when the driver writes `actual`, to the microsecond
    and on the clock of time.time(). It sends one such event a second at most, but
    always the last one. So the stamp of the change that reaches the target is exact
    however late it arrives. Polling query-balloon instead would wait for, and take,
    the lock that QEMU holds while it releases memory.
    """
    start = time.time()
    guest.target(mib)
    return lambda: next((event.stamp - start
                         for event in guest.qmp_events('BALLOON_CHANGE')
                         if event.data['actual'] == mib * MIB and event.stamp > start), None)


def resize(guest: Machine, mib: int, timeout: float = 300) -> float:
    """Set a target and wait until it is reached; the seconds that took."""
    took = ask(guest, mib)
    try:
        return wait_for(took, timeout, f'{guest.name} to reach {mib} MiB')
    except TimeoutError as error:
        raise GuestError(f'{error}: it has {guest.actual() / MIB:.1f} MiB') from error


def settle(guest: Machine) -> None:
    """Wait until a guest is idle."""
    def idle() -> bool:
        before = guest.host_cpu()
        time.sleep(0.5)
        return guest.host_cpu() - before <= 0.05

    wait_for(idle, 60, 'an idle guest')


def nothing_lost(guest: Machine) -> None:
    """Stop unless an empty balloon has given back what it took."""
    counters = guest.vmstat()
    if counters['balloon_inflate'] != counters['balloon_deflate']:
        raise GuestError(f"{guest.name}: {counters['balloon_inflate']} pages taken but "
                         f"{counters['balloon_deflate']} given back")


def trace(guest: Guest, *events: str) -> None:
    """Have QEMU log these events and no others."""
    for event in ('virt*', *events):
        guest.qmp('trace-event-set-state', name=event, enable=event in events)


def qemu_host(accel: str, path: str | None = None) -> str:
    """QEMU as a host, for circumstances()."""
    version = subprocess.run([path or qemu_path(), '--version'], capture_output=True,
                             text=True, check=True).stdout.splitlines()[0]
    return f"{re.sub('^QEMU emulator version ', 'QEMU ', version)}, {accel}"


def circumstances(kernel: str, host: str) -> dict:
    """What figures depend on, for reports."""
    makefile = existing(BUILD / 'tree/Makefile', 'tree', 'run make tree').read_text(
        encoding='utf-8')
    version = dict(re.findall(r'^(VERSION|PATCHLEVEL|SUBLEVEL) = (\d+)', makefile, re.M))
    cpu = re.search(r'^model name\s*: (.*)', Path('/proc/cpuinfo').read_text(
        encoding='utf-8'), re.M)
    return {
        'date': datetime.datetime.now().astimezone().isoformat(timespec='seconds'),
        'base': '.'.join(version.values()),
        'kernel': kernel,
        'host': host,
        'cpus': os.cpu_count(),
        'cpu': cpu.group(1) if cpu else 'unknown',
        'host kernel': os.uname().release,
        'load average': round(os.getloadavg()[0], 2),
    }


def warn_if_busy(facts: dict) -> None:
    """Say so where figures will not be worth much."""
    if facts['load average'] > 0.5:
        print(f"this host is busy (load average {facts['load average']}): "
              'times will be long and scatter', flush=True)


class Target(NamedTuple):
    """What the project has promised."""
    text: str
    value: str
    met: bool

    def line(self) -> str:
        """As text."""
        return f"{'PASS' if self.met else 'MISS'}  {self.text}: {self.value}"


def markdown_table(head: tuple, lines: Any) -> str:
    """For the report; all columns but the first are numbers."""
    rule = ('---', *['---:'] * (len(head) - 1))
    return ''.join('| ' + ' | '.join(map(str, cells)) + ' |\n'
                   for cells in (head, rule, *lines))


def closing_line(targets: list, runs: int, facts: dict, report: Path) -> str:
    """How it went, and where to read more."""
    missed = sum(not target.met for target in targets)
    verdict = (f"{missed or 'no'} target{'' if missed == 1 else 's'} missed" if targets else
               'no targets for a guest of this size')
    return (f"{verdict}; medians of {runs}, "
            f"base {facts['base']}, {facts['host']}, {facts['cpus']} CPUs; "
            f'report: {shown(report)}')


def gnuplot_path() -> str:
    """Where gnuplot is."""
    path = shutil.which('gnuplot')
    if not path:
        raise BedError('gnuplot is not in PATH: apt-get install gnuplot-nox')
    return path


def prepare(results: Path, mib: int) -> None:
    """Make the directory for results; stop here if something is missing that would
    stop the work later, such as so much memory."""
    gnuplot_path()
    free = host_available() // MIB
    if free < mib:
        raise BedError(f'this host has {free} MiB of memory available and {mib} are '
                       'needed: free some and run this again, or see --help for a smaller guest')
    results.mkdir(parents=True, exist_ok=True)


def shown(path: Path) -> str:
    """A path as a user who stands in the top directory would type it."""
    return str(path.relative_to(BUILD.parent))


def write_json(path: Path, data: Any) -> None:
    """Write raw data."""
    path.write_text(json.dumps(data, indent=1) + '\n', encoding='utf-8')


def plot(script: str, png: Path, size: str) -> None:
    """Have gnuplot draw a picture."""
    terminal = (f"set terminal pngcairo size {size} font 'sans,11' background 'white'\n"
                f"set output '{png}'\n")
    result = subprocess.run([gnuplot_path(), '-'], input=terminal + PLOT_STYLE + script,
                            text=True, capture_output=True, check=False)
    if result.returncode:
        raise BedError(f'gnuplot drew nothing: {" ".join(result.stderr.split())}')


def datablock(name: str, rows: Any) -> str:
    """Rows of values, inline in a gnuplot script."""
    lines = (' '.join(map(str, row)) for row in rows)
    return f'${name} << END\n' + '\n'.join(lines) + '\nEND\n'


def program(main: Callable[[], None]) -> None:
    """Run a program so that what goes wrong is one line, not a traceback.

    An interrupt ends it at once; the bed then ends the guest.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    name = Path(sys.argv[0]).name
    try:
        main()
    except (BedError, OSError) as error:
        sys.exit(f'{name}: {error}')
    except (GuestError, QMPError, SplatError, TimeoutError) as error:
        sys.exit(f'{name}: {" ".join(str(error).split())}: the console above tells why')
