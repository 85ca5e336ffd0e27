# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) the project's developers
"""A VMM and its guest's driver in one, as good or as hostile as a test wants.

    with Vmm(daemon.socket) as vmm:
        vmm.set_up()
        vmm.inflate([16, 17, 18])

Guest memory is a memfd: pages from FIRST_DATA on are the guest's own, below lie
the rings and the buffers that they point to.
"""

import array
import mmap
import os
import select
import socket
import struct
import time

from rig import PAGE, wait_for

# Requests.
GET_FEATURES, SET_FEATURES, SET_OWNER, SET_MEM_TABLE = 1, 2, 3, 5
SET_VRING_NUM, SET_VRING_ADDR, SET_VRING_BASE, GET_VRING_BASE = 8, 9, 10, 11
SET_VRING_KICK, SET_VRING_CALL, SET_VRING_ERR = 12, 13, 14
GET_PROTOCOL_FEATURES, SET_PROTOCOL_FEATURES, GET_QUEUE_NUM = 15, 16, 17
SET_VRING_ENABLE, SET_BACKEND_REQ_FD = 18, 21
GET_CONFIG, SET_CONFIG, RESET_DEVICE, VRING_KICK = 24, 25, 34, 35
CONFIG_CHANGE = 2

NEED_REPLY = 8
NO_FD = 0x100

# Feature bits.
MUST_TELL_HOST, STATS, OOM, HINT, POISON, REPORTING, BITMAP = 0, 1, 2, 3, 4, 5, 20
INDIRECT, EVENT_IDX, PROTOCOL, VERSION_1 = 28, 29, 30, 32

REPLY_ACK = 1 << 3
BACKEND_REQ = 1 << 5
CONFIG = 1 << 9

# Descriptor flags.
NEXT, WRITE, INDIRECT_TABLE = 1, 2, 4

#: Where guest memory begins for the guest, and for the VMM.
GUEST = 0x40000000
USER = 0x7f0000000000
RING_SIZE = 64
RINGS = 8
RING_BYTES = 4 * PAGE
BUFFERS = RINGS * RING_BYTES
FIRST_DATA = 1024


class Ring:
    """A driver's side of one ring."""

    def __init__(self, vmm, index):
        self.vmm = vmm
        self.index = index
        self.start = index * RING_BYTES
        self.avail_at = self.start + PAGE
        self.used_at = self.start + 2 * PAGE
        self.kick_fd = -1
        self.call_fd = -1
        self.err_fd = -1
        self.next_desc = 0
        self.avail_idx = 0
        self.seen = 0

    def close(self):
        """Close its descriptors."""
        for fd in (self.kick_fd, self.call_fd, self.err_fd):
            if fd >= 0:
                os.close(fd)
        self.kick_fd = self.call_fd = self.err_fd = -1

    def desc(self, slot, addr, length, flags=0, next_=0):
        """Write a descriptor."""
        self.vmm.put(self.start + 16 * slot,
                     struct.pack('<QIHH', addr, length, flags, next_))

    def offer(self, head, publish=True):
        """Make a buffer available."""
        self.vmm.put(self.avail_at + 4 + 2 * (self.avail_idx % RING_SIZE),
                     struct.pack('<H', head))
        self.avail_idx = (self.avail_idx + 1) & 0xffff
        if publish:
            self.publish()

    def publish(self, idx=None):
        """Say how many are available."""
        self.vmm.put(self.avail_at + 2, struct.pack(
            '<H', self.avail_idx if idx is None else idx))

    def kick(self):
        """Notify the device."""
        os.write(self.kick_fd, struct.pack('<Q', 1))

    def used_idx(self):
        """How many came back."""
        return struct.unpack('<H', self.vmm.get(self.used_at + 2, 2))[0]

    def used(self):
        """Heads that came back since the last call."""
        heads = []
        while self.seen != self.used_idx():
            at = self.used_at + 4 + 8 * (self.seen % RING_SIZE)
            heads.append(struct.unpack('<II', self.vmm.get(at, 8))[0])
            self.seen = (self.seen + 1) & 0xffff
        return heads

    def wait_used(self, count=1, timeout=10):
        """Wait until so many came back; their heads."""
        heads = []

        def enough():
            heads.extend(self.used())
            return len(heads) >= count

        wait_for(enough, timeout, f'{count} buffers of ring {self.index}', 0.002)
        return heads

    def called(self, timeout=5):
        """Wait for a call; whether one came."""
        if not select.select([self.call_fd], [], [], timeout)[0]:
            return False
        os.read(self.call_fd, 8)
        return True

    def send(self, payload, kick=True):
        """Offer one readable buffer."""
        slot = self.next_desc
        self.next_desc = (slot + 1) % RING_SIZE
        at = BUFFERS + (self.index * RING_SIZE + slot) * PAGE
        self.vmm.put(at, payload)
        self.desc(slot, GUEST + at, len(payload))
        self.offer(slot)
        if kick:
            self.kick()
        return slot


class Vmm:
    """The VMM."""

    def __init__(self, path, mib=64):
        self.size = mib << 20
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(10)
        self.sock.connect(str(path))
        self.memory_fd = os.memfd_create('guest')
        os.ftruncate(self.memory_fd, self.size)
        self.memory = mmap.mmap(self.memory_fd, self.size)
        self.rings = [Ring(self, i) for i in range(RINGS)]
        self.req = None
        self.features = 0

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        """Go away."""
        self.sock.close()
        for ring in self.rings:
            ring.close()
        if self.req is not None:
            self.req.close()
            self.req = None
        if self.memory:
            self.memory.close()
            os.close(self.memory_fd)
            self.memory = None

    # Guest memory

    def put(self, at, data):
        """Write."""
        self.memory[at:at + len(data)] = data

    def get(self, at, length):
        """Read."""
        return self.memory[at:at + length]

    def touch(self, first, count):
        """Make the host give pages."""
        for pfn in range(first, first + count):
            self.memory[pfn * PAGE] = 1

    def used_bytes(self):
        """Bytes of host memory behind the guest."""
        return os.fstat(self.memory_fd).st_blocks * 512

    # Messages

    def send(self, request, payload=b'', fds=(), flags=1):
        """Send a message."""
        data = struct.pack('<III', request, flags, len(payload)) + payload
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                      array.array('i', fds))] if fds else []
        self.sock.sendmsg([data], ancillary)

    def receive(self):
        """The next answer: request, flags, payload."""
        header = self._read(12)
        request, flags, size = struct.unpack('<III', header)
        return request, flags, self._read(size)

    def _read(self, size):
        data = b''
        while len(data) < size:
            part = self.sock.recv(size - len(data))
            if not part:
                raise EOFError('the daemon has closed the connection')
            data += part
        return data

    def ask(self, request, payload=b'', fds=()):
        """Send a message that has an answer; the answer's payload."""
        self.send(request, payload, fds)
        answer, flags, data = self.receive()
        assert answer == request and flags == 5, (answer, flags)
        return data

    def tell(self, request, payload=b'', fds=()):
        """Send a message and wait for the acknowledgment; whether it is good."""
        self.send(request, payload, fds, 1 | NEED_REPLY)
        answer, flags, data = self.receive()
        assert answer == request and flags == 5 and len(data) == 8
        return struct.unpack('<Q', data)[0] == 0

    def gone(self):
        """Whether the daemon has hung up."""
        try:
            while True:
                if not self.sock.recv(4096):
                    return True
        except ConnectionError:
            return True
        except socket.timeout:
            return False

    # What a good VMM does

    def negotiate(self, features=None):
        """Features, protocol features and the request channel."""
        self.send(SET_OWNER)
        offered, = struct.unpack('<Q', self.ask(GET_FEATURES))
        self.offered = offered
        self.ask(GET_PROTOCOL_FEATURES)
        self.send(SET_PROTOCOL_FEATURES,
                  struct.pack('<Q', REPLY_ACK | BACKEND_REQ | CONFIG))
        near, far = socket.socketpair()
        self.req = near
        near.settimeout(10)
        assert self.tell(SET_BACKEND_REQ_FD, fds=(far.fileno(),))
        far.close()
        self.features = offered if features is None else features
        assert self.tell(SET_FEATURES, struct.pack('<Q', self.features))

    def mem_table(self, regions=None, fds=None):
        """Share memory: (guest, size, user, offset) each; whether it is taken."""
        if regions is None:
            regions = [(GUEST, self.size, USER, 0)]
        if fds is None:
            fds = [self.memory_fd] * len(regions)
        payload = struct.pack('<II', len(regions), 0)
        payload += b''.join(struct.pack('<QQQQ', *region) for region in regions)
        return self.tell(SET_MEM_TABLE, payload, fds)

    def set_up_ring(self, index, size=RING_SIZE):
        """Set one ring up."""
        ring = self.rings[index]
        ring.close()
        ring.kick_fd = os.eventfd(0)
        ring.call_fd = os.eventfd(0, os.EFD_NONBLOCK)
        ring.err_fd = os.eventfd(0, os.EFD_NONBLOCK)
        number = struct.pack('<Q', index)
        assert self.tell(SET_VRING_NUM, struct.pack('<II', index, size))
        assert self.tell(SET_VRING_BASE, struct.pack('<II', index, 0))
        assert self.tell(SET_VRING_ADDR, struct.pack(
            '<IIQQQQ', index, 0, USER + ring.start, USER + ring.used_at,
            USER + ring.avail_at, 0))
        assert self.tell(SET_VRING_CALL, number, (ring.call_fd,))
        assert self.tell(SET_VRING_ERR, number, (ring.err_fd,))
        assert self.tell(SET_VRING_KICK, number, (ring.kick_fd,))
        assert self.tell(SET_VRING_ENABLE, struct.pack('<II', index, 1))

    def set_up(self, features=None, rings=5):
        """Everything."""
        self.negotiate(features)
        assert self.mem_table()
        for index in range(rings):
            self.set_up_ring(index)

    def get_config(self, offset=0, size=16):
        """Config space."""
        return self.ask(GET_CONFIG, struct.pack('<III', offset, size, 0)
                        + bytes(size))[12:]

    def set_config(self, offset, data):
        """Write to config space; whether it is taken."""
        return self.tell(SET_CONFIG, struct.pack('<III', offset, len(data), 0)
                         + data)

    def num_pages(self):
        """What the balloon should be."""
        return struct.unpack('<I', self.get_config()[:4])[0]

    def set_actual(self, pages):
        """What the balloon is."""
        assert self.set_config(4, struct.pack('<I', pages))

    def config_changes(self, timeout=5):
        """Wait for a change of config space; whether one came."""
        self.req.settimeout(timeout)
        try:
            data = self.req.recv(12)
        except socket.timeout:
            return False
        return struct.unpack('<III', data)[0] == CONFIG_CHANGE

    def pfns(self, pages):
        """An array of PFNs of pages of guest memory."""
        return struct.pack(f'<{len(pages)}I', *(GUEST // PAGE + p for p in pages))

    def inflate(self, pages, ring=0):
        """Name pages and wait for the answer."""
        head = self.rings[ring].send(self.pfns(pages))
        assert self.rings[ring].wait_used() == [head]

    def held(self, page):
        """Whether the host has memory behind a page; reads nothing."""
        # SEEK_DATA finds the page itself if it is there.
        try:
            return os.lseek(self.memory_fd, page * PAGE, os.SEEK_DATA) == page * PAGE
        except OSError:
            return False


def settle(seconds=0.2):
    """Give the daemon the time to do what it should not."""
    time.sleep(seconds)
