"""Where the cache lies when nobody says otherwise."""

from pathlib import Path

from platformdirs import user_cache_path

from kernelpack.errors import CacheError


def default_root() -> Path:
    """The user's own cache folder; nothing is created.

    Raises:
        CacheError: the user has no home: HOME is not set, and the system does not know the user.

    """
    try:
        return user_cache_path("kernelpack", appauthor=False)
    except RuntimeError as error:
        raise CacheError(
            "there is no home folder to keep a cache in",
            hint="set HOME, or name a folder in KERNELPACK_CACHE_DIR",
        ) from error
