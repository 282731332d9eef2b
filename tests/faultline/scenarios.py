"""All scenarios there are; importing an area enters its own."""

from tests.faultline import clock, database, endpoint, order, platforms, pressure, vectors
from tests.faultline.place import SCENARIOS, run

__all__ = ["SCENARIOS", "clock", "database", "endpoint", "order", "platforms", "pressure", "run", "vectors"]
