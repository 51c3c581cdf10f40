"""Where the cache lies when nobody says otherwise."""

from pathlib import Path

from platformdirs import user_cache_path


def default_root() -> Path:
    """The user's own cache folder; nothing is created."""
    return user_cache_path("kernelpack", appauthor=False)
