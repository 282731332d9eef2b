"""Discord: private chats whole, servers when the bot is addressed, slash commands and buttons.

The only package that knows this SDK. What the SDK does by itself is left to it: waiting out 429, repeating
some 5xx, resuming a gateway session. What it leaves open is here: what was said while the bot was away, sends
whose outcome is unknown, a token that wears off under an answer, and a gateway task that a bad frame can end.
"""

from bot.adapters.discord.adapter import DiscordAdapter, check

__all__ = ["DiscordAdapter", "check"]
