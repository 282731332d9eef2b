"""Files that are their owner's alone: what is looser is tightened, and a link in their place is refused.

A file may have been copied back, unpacked or made by hand with the rights of everybody. What the bot writes itself
never depends on the umask.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
"""What a group and everybody may do."""
_OURS: Final = (
    "recollect.db*",
    "recollect.v*.bak",
    "recollect.ledger*",
    "recollect.log*",
    "alive",
    "backups/*.db",
    "backups/*.sha256",
)


class LinkError(OSError):
    """A symbolic link stands where a file of ours belongs; the text says what to do."""


def refuse_link(path: Path) -> None:
    """Refuse a file that is a link: a rewritten file would take the place of the link, and what it led to be left."""
    if path.is_symlink():
        raise LinkError(f"{path} is a symbolic link: set data_dir to the folder it leads to")


def loose(folder: Path) -> Iterator[Path]:
    """Yield the files of ours in a data folder, and the folder itself, that others may read or write."""
    for path in (folder, *(file for pattern in _OURS for file in folder.glob(pattern))):
        if not path.is_symlink() and path.exists() and stat.S_IMODE(path.stat().st_mode) & OTHERS:
            yield path


def tighten(folder: Path) -> list[Path]:
    """Take away what others may do with our files in a data folder; returns those that were loose.

    The folder stays as it is, it may hold more than ours. A file of another user stays, too: ``check`` tells of both.
    """
    tightened = []
    for path in loose(folder):
        if path == folder:
            continue
        try:
            path.chmod(stat.S_IMODE(path.stat().st_mode) & ~OTHERS)
        except PermissionError:
            continue
        tightened.append(path)
    return tightened


def sync(path: Path) -> None:
    """See to it that a file, or what is in a folder, is on the disk."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except PermissionError:  # A folder on Windows.
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
