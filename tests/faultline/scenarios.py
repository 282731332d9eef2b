"""All scenarios there are; importing an area enters its own."""

from tests.faultline import database, endpoint
from tests.faultline.place import SCENARIOS, run

__all__ = ["SCENARIOS", "database", "endpoint", "run"]
