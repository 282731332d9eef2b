"""Remembers. Knows neither platform nor bot.

This is the public face; outside this package only it, :mod:`memory.model` and :mod:`memory.ports` are
imported.
"""

from memory.access import Ruling
from memory.admissions import Allowed, Asking, Sort, Standing
from memory.answering import Heard, Waiting
from memory.backups import Backup, BackupError
from memory.backups import made_at as backup_made_at
from memory.backups import name_at as backup_name
from memory.backups import own as own_backups
from memory.backups import take as take_backup
from memory.backups import thin as thin_backups
from memory.backups import verify as verify_backup
from memory.block import block, day_of, quoted
from memory.calibrating import Calibration
from memory.census import Census, Numbers, Told, looking
from memory.consenting import Choice, Question, Stand
from memory.corrections import AlreadyAskedError, Disputed
from memory.db import DamagedError, DatabaseError
from memory.doubts import Doubt, Holds
from memory.engine import KeyRefused
from memory.engine import keyed as file_keyed
from memory.engine import use as use_key
from memory.face import Memory, Owed
from memory.forget import PickError, Plan, PrivateOnlyError, UntypedError
from memory.imported import ImportRefusedError
from memory.imported import parse as parse_export
from memory.importing import TakenIn
from memory.jobs import last_runs
from memory.journal import Line
from memory.lexicon import is_question
from memory.lists import Listed, Page
from memory.opening import DATABASE_NAME, inspect
from memory.overview import Overview, next_time
from memory.private import loose as loose_files
from memory.reasons import Explained, Fate, Reason, rests_on_memory
from memory.recall import SCORE_TERMS, RecallOptions
from memory.rekeying import new_key
from memory.rekeying import rekey as rekeyed
from memory.restoring import Restored, ensure_alone, restore
from memory.revising import Revision
from memory.rules import (
    Dispute,
    asks_about_everything,
    detect_language,
    disputes,
    is_small_talk,
    off_the_record,
    wants_forgetting,
    wants_remembering,
)
from memory.script import chinese as chinese_script
from memory.sensitive import MATTERS, Matter
from memory.shipped import told_texts as sample_texts
from memory.slots import label as attribute_label
from memory.usage import Spent, UsageKind
from memory.zones import shown as zone_shown
from memory.zones import zone_named

__all__ = [
    "DATABASE_NAME",
    "MATTERS",
    "SCORE_TERMS",
    "Allowed",
    "AlreadyAskedError",
    "Asking",
    "Backup",
    "BackupError",
    "Calibration",
    "Census",
    "Choice",
    "DamagedError",
    "DatabaseError",
    "Dispute",
    "Disputed",
    "Doubt",
    "Explained",
    "Fate",
    "Heard",
    "Holds",
    "ImportRefusedError",
    "KeyRefused",
    "Line",
    "Listed",
    "Matter",
    "Memory",
    "Numbers",
    "Overview",
    "Owed",
    "Page",
    "PickError",
    "Plan",
    "PrivateOnlyError",
    "Question",
    "Reason",
    "RecallOptions",
    "Restored",
    "Revision",
    "Ruling",
    "Sort",
    "Spent",
    "Stand",
    "Standing",
    "TakenIn",
    "Told",
    "UntypedError",
    "UsageKind",
    "Waiting",
    "asks_about_everything",
    "attribute_label",
    "backup_made_at",
    "backup_name",
    "block",
    "chinese_script",
    "day_of",
    "detect_language",
    "disputes",
    "ensure_alone",
    "file_keyed",
    "inspect",
    "is_question",
    "is_small_talk",
    "last_runs",
    "looking",
    "loose_files",
    "new_key",
    "next_time",
    "off_the_record",
    "own_backups",
    "parse_export",
    "quoted",
    "rekeyed",
    "restore",
    "rests_on_memory",
    "sample_texts",
    "take_backup",
    "thin_backups",
    "use_key",
    "verify_backup",
    "wants_forgetting",
    "wants_remembering",
    "zone_named",
    "zone_shown",
]
