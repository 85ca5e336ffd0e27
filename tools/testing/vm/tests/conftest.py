# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""What all end-to-end tests share: the bed's path, consoles, complaints."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import bed  # noqa: E402  (needs the path)
import qemu  # noqa: E402
import uml  # noqa: E402


@pytest.fixture(scope='session')
def soak() -> bool:
    """Whether long cases run whole."""
    return os.environ.get('SOAK') == '1'


@pytest.fixture(scope='session', params=['qemu', 'uml'])
def boot(request):
    """The class of guests, for tests that run on both beds."""
    return {'qemu': qemu.Guest, 'uml': uml.UmlGuest}[request.param]


def pytest_configure(config):
    """Marks of ours."""
    config.addinivalue_line('markers', 'long: takes half a minute or more')


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Long tests begin first, so that none is left alone at the end."""
    items.sort(key=lambda item: item.get_closest_marker('long') is None)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Show the console of every guest that runs when a test fails."""
    report = (yield).get_result()
    if report.failed:
        for guest in bed.live:
            report.sections.append((f'console of {guest.name}',
                                    '\n'.join(guest.console.splitlines()[-200:])))


@pytest.fixture(autouse=True)
def no_complaints():
    """A test also fails when its guest's kernel complains."""
    yield
    found = [c for guest in bed.live for c in guest.new_complaints()]
    if found:
        pytest.fail('; '.join(found[:5]), pytrace=False)
