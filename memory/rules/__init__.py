"""Certain facts read from plain statements, in Chinese and English, without a model, a clock or any I/O.

Whatever a rule is unsure of it leaves alone; distillation has its turn when the session is over.
"""

from __future__ import annotations

from memory.rules.aside import off_the_record
from memory.rules.disputing import Dispute, disputes
from memory.rules.reader import candidates
from memory.rules.remembering import wants_remembering
from memory.rules.requests import (
    Refused,
    asks_about_everything,
    is_small_talk,
    remember,
    wants_forgetting,
)
from memory.script import language as detect_language

__all__ = [
    "Dispute",
    "Refused",
    "asks_about_everything",
    "candidates",
    "detect_language",
    "disputes",
    "is_small_talk",
    "off_the_record",
    "remember",
    "wants_forgetting",
    "wants_remembering",
]
