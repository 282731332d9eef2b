"""Where this machine stands: the time zone of people who have not said theirs."""

from __future__ import annotations

import tzlocal

from config.settings import Settings


def zone_of(settings: Settings) -> str:
    """The IANA name of the zone in ``settings``, else of this machine, else UTC."""
    return settings.zone or tzlocal.get_localzone_name() or "UTC"
