# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""Runs the kselftests in a guest and collects what they say."""

import re

import pytest
from bed import SELFTESTS
from moves import resize

pytestmark = pytest.mark.xdist_group('selftests')  # they share a guest

PROGRAMS = sorted(p.stem for p in SELFTESTS.glob('balloon_*.c'))


@pytest.fixture(scope='module', name='guest', params=['on', 'off'])
def ballooned_guest(request, boot):
    """A guest a quarter of which is in the balloon, with either MemTotal rule."""
    with boot(mem_mib=512, balloon=f'deflate-on-oom={request.param}') as guest:
        resize(guest, 384)
        yield guest


@pytest.mark.parametrize('program', PROGRAMS)
def test_kselftest(guest, program):
    """Every line of its TAP output is ok."""
    status, output = guest.try_run(program, timeout=240)
    results = re.findall(r'^(ok|not ok) \d+ (.*)$', output, re.M)
    plan = re.search(r'^1\.\.(\d+)$', output, re.M)
    assert plan and len(results) == int(plan.group(1)), output
    failed = [name for result, name in results if result != 'ok']
    assert not failed and status == 0, output
    skipped = [name for _, name in results if '# SKIP' in name]
    assert not skipped, f'nothing may be skipped here: {output}'
