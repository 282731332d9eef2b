"""The commands, the same on every platform. What they show is built from stored rows.

One file a group of commands (:class:`bot.commands.order.Group`); the menu and the way to them are in
:mod:`bot.commands.menu`.
"""

from bot.commands.doubting import Question
from bot.commands.menu import ADMIN_NAMES, NAMES, Commands, specs
from bot.commands.order import Order, Pressed

__all__ = ["ADMIN_NAMES", "NAMES", "Commands", "Order", "Pressed", "Question", "specs"]
