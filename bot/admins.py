"""Who runs this bot, as far as it knows."""

from __future__ import annotations

from typing import Final

from config.settings import AccessSettings
from memory.model import Account

TERMINAL: Final = "console"
"""The platform of whoever sits at the machine itself."""


def is_admin(owner: Account, access: AccessSettings) -> bool:
    """Whether somebody is an admin: named in the settings, or at the terminal."""
    return owner.platform == TERMINAL or f"{owner.platform}:{owner.user_id}" in access.admins
