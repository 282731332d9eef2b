"""A made-up day of several people for ``bench cost``: what they say to the bot, and when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

MORNING: Final = datetime(2025, 3, 5, 8, tzinfo=UTC)
_BETWEEN_SESSIONS: Final = timedelta(hours=4)
"""Four sessions of five messages fill the day of a person."""
_BETWEEN_MESSAGES: Final = timedelta(seconds=70)
_BETWEEN_PEOPLE: Final = timedelta(seconds=25)

TALK: Final = {
    "en": (
        ("Good morning!", "*My name is {name} and I live in {city}.", "*I work as a {job} at night.",
         "What could I cook for two with little time?", "Thanks, that helps"),
        ("*I am allergic to {food}.", "*My sister {other} visits me next Friday.", "*I collect {thing}.",
         "Where could we go with children when it rains?", "*She does not like museums."),
        ("Do you remember what I do for a living?", "*I used to play the {music}, but I sold it.",
         "*I have been learning {skill} since January.", "Explain it to me in one sentence, please.", "haha ok"),
        ("*I do not drink coffee any more.", "*My flat is on the fifth floor without a lift.",
         "*On Saturday at 10 I have an appointment at the dentist.", "How long does {skill} take to learn?",
         "Good night"),
    ),
    "zh": (
        ("早上好！", "*我叫{name}，住在{city}。", "*我是一名{job}，经常上夜班。", "两个人吃饭，时间不多，做点什么好？",
         "谢谢，很有用"),
        ("*我对{food}过敏。", "*我姐姐{other}下周五来看我。", "*我喜欢收集{thing}。", "下雨天带孩子可以去哪儿？",
         "*她不喜欢逛博物馆。"),
        ("你还记得我是做什么的吗？", "*我以前弹{music}，后来卖掉了。", "*我从一月开始学{skill}。",
         "请用一句话解释一下。", "哈哈好的"),
        ("*我现在不喝咖啡了。", "*我家在五楼，没有电梯。", "*周六上午十点我约了牙医。", "{skill}要学多久？", "晚安"),
    ),
}  # fmt: skip
"""What is said in each session. A star marks what a model finds worth noting."""

LIVES: Final = (
    ("en", {"name": "Tamsin", "city": "Galway", "job": "baker", "food": "sesame", "other": "Orla", "thing": "stamps",
            "music": "cello", "skill": "Welsh"}),
    ("zh", {"name": "江远", "city": "洛阳", "job": "司机", "food": "花生", "other": "江月", "thing": "邮票",
            "music": "古筝", "skill": "木工"}),
    ("en", {"name": "Bram", "city": "Utrecht", "job": "porter", "food": "kiwi", "other": "Saskia", "thing": "maps",
            "music": "oboe", "skill": "pottery"}),
    ("zh", {"name": "唐棠", "city": "贵阳", "job": "医生", "food": "芒果", "other": "唐梨", "thing": "明信片",
            "music": "钢琴", "skill": "书法"}),
    ("en", {"name": "Ines", "city": "Porto", "job": "nurse", "food": "mustard", "other": "Rita", "thing": "coins",
            "music": "viola", "skill": "Greek"}),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Saying:
    """A message: by which person (0 is the first), in which session of theirs, and whether it is worth noting."""

    person: int
    session: int
    name: str
    text: str
    at: datetime
    lasting: bool


def sayings(people: int = len(LIVES)) -> list[Saying]:
    """Everything that is said in the day by the first ``people`` of those there are, in order of time."""
    return sorted((each for person in range(people) for each in _of(person)), key=lambda saying: saying.at)


def _of(person: int) -> Iterator[Saying]:
    language, life = LIVES[person]
    for session, texts in enumerate(TALK[language]):
        begun = MORNING + session * _BETWEEN_SESSIONS + person * _BETWEEN_PEOPLE
        for place, text in enumerate(texts):
            said = text.removeprefix("*").format(**life)
            yield Saying(
                person, session, life["name"], said, begun + place * _BETWEEN_MESSAGES, lasting=text.startswith("*")
            )
