# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""Laying the project over a base that has moved."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from bed import BUILD, ROOT

EDITS = ROOT / 'scripts/edits'
VERSION = '6.12.999'


@pytest.fixture(name='base')
def copied_base(tmp_path):
    """Those files of the base that the edits are about."""
    for name in set(re.findall(r'^@ (\S+)', EDITS.read_text(), re.M)):
        target = tmp_path / 'base' / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(BUILD / 'base' / name, target)
    return tmp_path / 'base'


def apply_edits(base: Path) -> subprocess.CompletedProcess:
    """Run the script that makes the edits, for a base of some version."""
    return subprocess.run(
        [ROOT / 'scripts/apply-edits', '-v', f'base={base}',
         '-v', f'out={base.parent / "out"}', '-v', f'version={VERSION}', EDITS],
        capture_output=True, text=True, check=False)


def edits() -> list:
    """(file, first line looked for) of each edit."""
    found = re.findall(r'^@ (\S+)\n(?:\+.*\n)*[ -](.*)', EDITS.read_text(), re.M)
    assert found
    return found


def test_edits_apply(base):
    """On the base as it is every edit applies, and the files change."""
    result = apply_edits(base)
    assert result.returncode == 0, result.stderr
    for name in result.stdout.split():
        assert (base.parent / 'out' / name).read_text() != (base / name).read_text()


@pytest.mark.parametrize('number', range(len(edits())))
@pytest.mark.parametrize('what', ['gone', 'twice'])
def test_base_that_moved(base, number, what):
    """A line that is gone, or there twice: one line names file, line, version."""
    name, line = edits()[number]
    path = base / name
    text = path.read_text()
    if what == 'gone':
        path.write_text(text.replace(f'{line}\n', f'{line} moved\n'))
    else:
        path.write_text(text + text)
    result = apply_edits(base)
    assert result.returncode != 0
    assert len(result.stderr.splitlines()) == 1
    assert name in result.stderr
    assert line in result.stderr
    assert VERSION in result.stderr


def test_file_that_is_gone(base):
    """So does a file that the base no longer has."""
    name, _ = edits()[0]
    (base / name).unlink()
    result = apply_edits(base)
    assert result.returncode != 0
    assert name in result.stderr and VERSION in result.stderr
