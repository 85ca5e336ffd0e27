#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""Guests in the distribution's QEMU, the host that users have."""

import contextlib
import os
import re
import shutil
import socket
from pathlib import Path
from typing import Any, Iterable

from bed import (BUILD, DRIVER, KERNEL, MIB, PAGE, QMP, BOOT_TIMEOUT, Agent, BedError,
                 GuestError, Kernel, Machine, built_kernel, existing, live, module_bytes,
                 wait_for)

QEMU = 'qemu-system-x86_64'


def kvm_usable() -> bool:
    """Whether QEMU can use KVM here."""
    return os.access('/dev/kvm', os.R_OK | os.W_OK)


def qemu_path() -> str:
    """Where QEMU is."""
    path = shutil.which(QEMU)
    if not path:
        raise BedError(f'{QEMU} is not in PATH: apt-get install qemu-system-x86')
    return path


def _stock_kernel(driver: str | None) -> Kernel:
    remedy = 'run make stock'
    image = existing(BUILD / 'stock/vmlinuz', 'stock kernel', remedy)
    found = {}
    for path in (BUILD / 'stock/lib/modules').rglob('*.ko*'):
        found[path.name.split('.')[0].replace('-', '_')] = path
    if driver == 'ours':
        found['virtio_balloon'] = existing(
            BUILD / 'module/virtio_balloon.ko', 'module for the stock kernel',
            'run make module')
    order: list = []

    def add(name: str) -> None:
        # What is not there as a module is built in.
        path = found.get(name.replace('-', '_'))
        if path and path not in order:
            for needed in _module_needs(path):
                add(needed)
            order.append(path)

    for name in ('virtio_pci', 'virtio_blk', 'virtio_balloon' if driver else ''):
        add(name)
    return Kernel(image, order)


def _module_needs(path: Path) -> list:
    match = re.search(rb'\0depends=([^\0]*)\0', module_bytes(path))
    return [n for n in match.group(1).decode().split(',') if n] if match else []


# A busy host is late with timer interrupts. Then a guest under TCG finds its timer
# broken (no_timer_check), or takes its time stamp counter for one that is many times
# slower, so that its seconds pass too fast (clocksource).
_TCG_APPEND = 'no_timer_check clocksource=hpet '

# TCG sometimes lets one processor run instructions that another has patched and
# everybody has been told of: the kernel meets its own breakpoint. Booting patches most.
_TCG_FAULT = 'Oops: int3'
_TCG_BOOTS = 3


class Guest(Machine):
    """A virtual machine with a balloon.

    kernel       name of a kernel under build/kernel, or 'stock' for the
                 distribution's
    driver       'ours', 'base' (the base tree's own) or None
    load         load the driver at boot; otherwise it waits in /modules
    params       the driver's module parameters
    mem_mib      RAM
    backed       the host has all of it from the start
    smp          processors
    balloon      properties of virtio-balloon-pci; None: no balloon
    devices      more -device values
    qemu_args    more QEMU arguments
    append       more of the kernel's command line
    swap_mib     a swap device of that size, in use; 0: none
    disks        image files, which become /dev/vda and so on after swap
    machine      'q35' or 'pc'
    stock        the same as kernel='stock'
    incoming     a migration stream in a file to continue, instead of a boot
    qemu         the program; None: the system's
    allow_splats regular expressions for complaints on the console that the
                 test expects; True: anything goes
    name         for messages
    """

    def __init__(self, kernel: str = KERNEL, driver: str | None = DRIVER, *,
                 load: bool = True, params: str = '',
                 mem_mib: int = 512, backed: bool = False, smp: int = 2,
                 balloon: str | None = 'deflate-on-oom=on,free-page-reporting=on',
                 devices: Iterable = (), qemu_args: Iterable = (),
                 append: str = '', swap_mib: int = 0, disks: Iterable = (),
                 machine: str = 'q35', stock: bool = False,
                 incoming: Any = None, qemu: str | None = None,
                 allow_splats: Any = (), name: str | None = None) -> None:
        kernel = 'stock' if stock else kernel
        super().__init__(name or f'{kernel}/{driver}', mem_mib, allow_splats)
        self.load = load
        self.params = params
        self.backed = backed
        self.smp = smp
        self.balloon = balloon
        self.devices = list(devices)
        self.qemu_args = list(qemu_args)
        self.append = append
        self.swap_mib = swap_mib
        self.disks = list(disks)
        self.machine = machine
        self.incoming = incoming
        self.qemu = qemu
        self.accel = 'kvm' if kvm_usable() else 'tcg'
        self._kernel = (
            _stock_kernel(driver) if kernel == 'stock'
            else built_kernel(kernel, driver, 'arch/x86/boot/bzImage'))

    def __enter__(self) -> 'Guest':
        self.qemu = self.qemu or qemu_path()
        for attempt in range(1, _TCG_BOOTS + 1):
            try:
                super().__enter__()
                break
            except GuestError:
                if (self.accel != 'tcg' or _TCG_FAULT not in self.console
                        or attempt == _TCG_BOOTS):
                    raise
        return self

    def _start(self) -> None:
        initrd = self._write_initrd(self._kernel.modules, self.load, self.params)
        self._watch()
        qmp, qmp_far = socket.socketpair()
        agent, agent_far = socket.socketpair()
        with qmp_far, agent_far:
            fds = qmp_far.fileno(), agent_far.fileno()
            self._process = self._launch(self._command(initrd, *fds), 'qemu.log', fds)
        self._agent = Agent(agent)
        self._qmp = QMP(qmp)
        live.append(self)
        try:
            self.qmp('qmp_capabilities')
        except GuestError as error:
            raise BedError('QEMU did not start: ' + ' '.join(self._host_log().split())) from error
        if self.incoming:
            self._wait_incoming()
            return
        self._wait_boot()
        if _TCG_FAULT in self.console:
            raise GuestError(f'{self.name} does not boot')
        if self.swap_mib:
            self.run('mkswap /dev/vda && swapon /dev/vda')

    def _wait_incoming(self) -> None:
        def done() -> bool:
            status = self.qmp('query-migrate').get('status')
            if status == 'failed' or not self.alive():
                raise GuestError(f'{self.name}: {self._host_log()}')
            return status == 'completed'

        wait_for(done, BOOT_TIMEOUT, 'the migrated guest to arrive')
        # The agent said hello to another host.
        self._agent.greeting = ''

    def _host_log(self) -> str:
        if self.dir:
            with contextlib.suppress(FileNotFoundError):
                return (self.dir / 'qemu.log').read_text(errors='replace')
        return ''

    def _command(self, initrd: Path, qmp_fd: int, agent_fd: int) -> list:
        tcg = self.accel == 'tcg'
        command = [
            self.qemu, '-nodefaults', '-no-user-config', '-display', 'none',
            '-vga', 'none', '-no-reboot',
            '-accel', 'tcg,thread=multi' if tcg else 'kvm',
            # Five page table levels cost TCG time and prove nothing here.
            '-cpu', 'max,la57=off' if tcg else 'host',
            '-machine', self.machine, '-m', str(self.mem_mib),
            '-smp', str(self.smp), '-name', self.name.replace(',', '.'),
            '-kernel', str(self._kernel.image), '-initrd', str(initrd),
            '-append', 'console=ttyS0 loglevel=7 mitigations=off panic=-1 '
                       'rcupdate.rcu_cpu_stall_timeout=60 '
                       f'{_TCG_APPEND if tcg else ""}{self.append}',
            '-chardev', f'file,id=console,path={self.dir}/console',
            '-serial', 'chardev:console',
            '-chardev', f'socket,id=agent,fd={agent_fd}',
            '-serial', 'chardev:agent',
            '-chardev', f'socket,id=qmp,fd={qmp_fd}',
            '-mon', 'chardev=qmp,mode=control',
            # Every kick and every value of `actual` that the driver writes.
            '-trace', 'virtio_queue_notify', '-trace', 'virtio_balloon_set_config',
            '-D', f'{self.dir}/trace',
        ]
        if self.backed:
            command += ['-machine', 'memory-backend=ram', '-object',
                        f'memory-backend-ram,id=ram,size={self.mem_mib}M,prealloc=on']
        if self.balloon is not None:
            command += ['-device', ','.join(
                ('virtio-balloon-pci,id=balloon0', *filter(None, [self.balloon])))]
        for number, image in enumerate(self._swap_image() + self.disks):
            command += ['-drive', f'file={image},if=none,format=raw,id=disk{number}',
                        '-device', f'virtio-blk-pci,drive=disk{number}']
        if self.incoming:
            command += ['-incoming', f'exec:cat {self.incoming}']
        for device in self.devices:
            command += ['-device', device]
        return command + self.qemu_args

    def _swap_image(self) -> list:
        if not self.swap_mib:
            return []
        path = f'{self.dir}/swap'
        with open(path, 'wb') as image:
            image.truncate(self.swap_mib * MIB)
        return [path]

    def host_rss(self) -> int:
        """Bytes of host memory behind the guest, QEMU's own included."""
        status = Path(f'/proc/{self.pid}/status').read_text(encoding='ascii')
        # VmRSS counts shared memory (RssShmem) as well as anonymous.
        match = re.search(r'^VmRSS:\s+(\d+) kB', status, re.M)
        if not match:
            raise GuestError(f'{self.name}: QEMU is gone')
        return int(match.group(1)) * 1024

    def _trace(self) -> str:
        if self.dir:
            with contextlib.suppress(FileNotFoundError):
                return (self.dir / 'trace').read_text(errors='replace')
        return ''

    def kicks(self) -> int:
        """Notifications that the guest sent to virtio devices so far."""
        return self._trace().count('virtio_queue_notify ')

    def actual_writes(self) -> list:
        """Every size that the driver ever told its host, in bytes given up."""
        return [int(n) * PAGE for n in
                re.findall(r'virtio_balloon_set_config .*?(\d+)', self._trace())]

    def complaints(self) -> list:
        """What is wrong whatever the test: splats, and sizes beyond RAM."""
        beyond = [size for size in self.actual_writes() if size > self.mem_mib * MIB]
        return super().complaints() + [f'actual is {size}, beyond RAM' for size in beyond]
