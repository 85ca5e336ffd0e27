# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""scripts/overlay on a base of a few files, and what scripts/module refuses."""

import hashlib
import os
import shutil
import subprocess

import pytest
from bed import ROOT

VERSION = 'VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 99\n'
EDITED = 'drivers/virtio/Makefile'
EDITS = f'''# An edit.
@ {EDITED}
 first
-old
+new
+newer
'''


class Project:
    """A scratch copy of the scripts, with a base and files of its own."""

    def __init__(self, path):
        self.path = path
        self.base = path / 'build/base'
        self.tree = path / 'build/tree'
        shutil.copytree(ROOT / 'scripts', path / 'scripts')
        self.write('scripts/edits', EDITS)
        self.write('build/base/Makefile', VERSION)
        self.write(f'build/base/{EDITED}', 'first\nold\nlast\n')
        self.write('build/base/mm/page_reporting.c', 'of the base\n')
        self.write('build/base.version', '6.12.99-1\n')

    def write(self, name, text):
        """Make a file, and the directories above it."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def run(self, script, *args):
        """Run one of the scripts."""
        return subprocess.run(
            [self.path / 'scripts' / script, *args], text=True, check=False,
            stdin=subprocess.DEVNULL, capture_output=True)

    def overlay(self):
        """Lay over, which has to succeed."""
        done = self.run('overlay')
        assert done.returncode == 0, done.stderr


def files(top):
    """Path -> content, modification time of each file below top."""
    return {
        str(path.relative_to(top)): (
            hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in top.rglob('*') if path.is_file()}


def fails_with_one_line(done):
    """The one line in which a script that failed said why."""
    assert done.returncode != 0
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


@pytest.fixture(name='project')
def scratch_project(tmp_path):
    """A project to play with."""
    return Project(tmp_path)


def test_base_stays_pristine(project):
    """The base shares files with the tree by hard link; none is written to."""
    before = files(project.base)
    project.write('mm/page_reporting.c', 'ours\n')
    project.write('drivers/virtio/balloon/chunks.c', 'ours\n')
    project.overlay()
    assert files(project.base) == before
    assert (project.tree / 'mm/page_reporting.c').read_text() == 'ours\n'
    assert (project.tree / 'drivers/virtio/balloon/chunks.c').read_text() == 'ours\n'
    assert (project.tree / EDITED).read_text() == 'first\nnew\nnewer\nlast\n'
    assert os.path.samefile(project.tree / 'Makefile', project.base / 'Makefile')


def test_second_run_touches_nothing(project):
    """Or every kernel build would start anew."""
    project.write('mm/page_reporting.c', 'ours\n')
    project.overlay()
    before = files(project.tree)
    project.overlay()
    assert files(project.tree) == before


def test_changed_file_touches_no_other(project):
    """One change rebuilds what depends on it, not more."""
    project.write('mm/page_reporting.c', 'ours\n')
    project.overlay()
    before = files(project.tree)
    project.write('mm/page_reporting.c', 'ours, changed\n')
    project.overlay()
    after = files(project.tree)
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {'mm/page_reporting.c'}


def test_removed_file_gives_way_to_the_base(project):
    """What is ours no longer is the base's again, or gone."""
    project.write('mm/page_reporting.c', 'ours\n')
    project.write('mm/more.c', 'ours\n')
    project.overlay()
    before = files(project.tree)['mm/page_reporting.c']
    (project.path / 'mm/page_reporting.c').unlink()
    (project.path / 'mm/more.c').unlink()
    project.overlay()
    after = files(project.tree)
    assert (project.tree / 'mm/page_reporting.c').read_text() == 'of the base\n'
    # Newer than what was built from ours, or it would not be built again.
    assert after['mm/page_reporting.c'][1] >= before[1]
    assert 'mm/more.c' not in after


def test_new_base_makes_a_new_tree(project):
    """A newer base package is not mixed with the older one."""
    project.overlay()
    (project.base / 'mm/page_reporting.c').unlink()
    project.write('build/base/mm/page_reporting.c', 'of a newer base\n')
    project.write('build/base.version', '6.12.100-1\n')
    project.overlay()
    assert (project.tree / 'mm/page_reporting.c').read_text() == 'of a newer base\n'


def test_edit_of_an_owned_file(project):
    """A file is edited or owned, not both."""
    project.write(EDITED, 'ours\n')
    assert EDITED in fails_with_one_line(project.run('overlay'))


def test_line_that_is_no_edit(project):
    """A slip in scripts/edits is not passed over."""
    project.write('scripts/edits', EDITS + 'stray\n')
    assert 'stray' in fails_with_one_line(project.run('overlay'))


def test_module_without_kdir(project):
    """No directory, or one that is not there."""
    assert 'KDIR=' in fails_with_one_line(project.run('module'))
    assert '/nowhere' in fails_with_one_line(project.run('module', '/nowhere'))


def test_module_for_what_is_no_kernel(project):
    """A directory of something else."""
    said = fails_with_one_line(project.run('module', str(project.base)))
    assert 'not the build directory' in said


@pytest.mark.parametrize('release, said', [
    ('6.1.0-28-amd64', 'needs 6.12'),
    ('6.12.99', 'CONFIG_MEMORY_BALLOON'),
])
def test_module_for_a_kernel_that_does_not_do(project, release, said):
    """Too old, or built without what the driver needs."""
    project.write('kdir/Makefile', '')
    project.write('kdir/Module.symvers', '')
    project.write('kdir/include/config/auto.conf', 'CONFIG_VIRTIO=y\n')
    project.write('kdir/include/config/kernel.release', f'{release}\n')
    words = fails_with_one_line(project.run('module', str(project.path / 'kdir')))
    assert release in words and said in words


def test_kconfig_lists_what_is_sourced():
    """The project's Kconfig and the edits name the same options, each once."""
    listed = [line for line in (ROOT / 'Kconfig').read_text().splitlines()
              if line.startswith('source ')]
    added = [line[1:] for line in (ROOT / 'scripts/edits').read_text().splitlines()
             if line.startswith('+source ')]
    assert listed and sorted(listed) == sorted(added)
    for line in listed:
        assert (ROOT / line.split('"')[1]).is_file()
