"""The default cache is the user's."""

from kernelpack.cache.location import default_root


def test_default_is_the_users_folder():
    """Without a word from anyone the cache lies in the user's cache folder."""
    assert default_root().name == "kernelpack"
