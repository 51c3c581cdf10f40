"""A project of three variants, not built yet and built."""

import pytest

from tests.fakes.project import make_project


@pytest.fixture
def project(tmp_path):
    return make_project(tmp_path)


@pytest.fixture
def built(project):
    """A project that was built once; its log is empty again."""
    project.build()
    project.compiled()
    return project
