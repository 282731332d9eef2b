"""The time zone that words name: an IANA name, a city the zone database knows, a distance from UTC. Pure."""

from __future__ import annotations

import re
from datetime import datetime
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from memory.model import SELF, Account
from memory.script import folded

TELLING: Final = frozenset({"timezone", "home"})
"""Attributes of the profile whose value tells where its owner's clock stands."""
LONGEST: Final = 40
"""Characters of a place; more is a sentence."""

_AREAS: Final = (
    "Africa/", "America/", "Antarctica/", "Arctic/", "Asia/", "Atlantic/", "Australia/", "Europe/", "Indian/",
    "Pacific/",
)  # fmt: skip
"""Parts of the zone database that hold places; the rest are countries, abbreviations and distances."""

_CHINESE: Final = {
    "Asia/Shanghai": "中国 大陆 北京 上海 广州 深圳 天津 重庆 成都 杭州 武汉 西安 南京 苏州 青岛 大连 沈阳"
    " 长沙 厦门 昆明 郑州 济南 合肥 福州 宁波 无锡 佛山 东莞 哈尔滨 长春 南昌 南宁 贵阳"
    " 太原 石家庄 兰州 海口 呼和浩特 银川 西宁 拉萨 三亚 珠海 温州 洛阳",
    "Asia/Hong_Kong": "香港",
    "Asia/Macau": "澳门",
    "Asia/Taipei": "台湾 台北 高雄 台中 台南 新竹",
    "Asia/Tokyo": "日本 东京 大阪 京都 横滨 名古屋 福冈 札幌 神户",
    "Asia/Seoul": "韩国 首尔 釜山",
    "Asia/Singapore": "新加坡",
    "Asia/Kuala_Lumpur": "吉隆坡",
    "Asia/Bangkok": "泰国 曼谷 清迈",
    "Asia/Ho_Chi_Minh": "胡志明市",
    "Asia/Manila": "马尼拉",
    "Asia/Kolkata": "印度 孟买 新德里",
    "Asia/Dubai": "迪拜",
    "Europe/London": "英国 伦敦 曼彻斯特 爱丁堡",
    "Europe/Paris": "巴黎 里昂",
    "Europe/Berlin": "德国 柏林 慕尼黑 法兰克福 汉堡",
    "Europe/Madrid": "马德里 巴塞罗那",
    "Europe/Rome": "意大利 罗马 米兰",
    "Europe/Vienna": "维也纳",
    "Europe/Zurich": "瑞士 苏黎世",
    "Europe/Amsterdam": "荷兰 阿姆斯特丹",
    "Europe/Brussels": "布鲁塞尔",
    "Europe/Stockholm": "斯德哥尔摩",
    "Europe/Moscow": "莫斯科",
    "Europe/Dublin": "都柏林",
    "America/New_York": "纽约 波士顿 华盛顿",
    "America/Los_Angeles": "洛杉矶 旧金山 西雅图 硅谷",
    "America/Chicago": "芝加哥 休斯顿",
    "America/Toronto": "多伦多 渥太华",
    "America/Vancouver": "温哥华",
    "Australia/Sydney": "悉尼",
    "Australia/Melbourne": "墨尔本",
    "Pacific/Auckland": "奥克兰",
}  # fmt: skip
"""What Chinese calls places, for which the zone database has English names alone."""
_ENGLISH: Final = {
    "Asia/Shanghai": "china|beijing|shenzhen|guangzhou|chengdu|hangzhou|nanjing|wuhan",
    "Asia/Kolkata": "india|mumbai|delhi|new delhi|bangalore|bengaluru|chennai",
    "Asia/Tokyo": "japan|osaka|kyoto",
    "Europe/Berlin": "germany|munich|hamburg|cologne|frankfurt",
    "Europe/London": "england|scotland|wales|manchester|edinburgh",
    "Europe/Rome": "italy|milan",
    "Europe/Zurich": "switzerland|zürich|geneva",
    "America/New_York": "boston|new york city|nyc|philadelphia|washington dc",
    "America/Chicago": "houston|dallas|austin",
    "America/Los_Angeles": "san francisco|seattle|san diego",
}
"""Large places, and countries of one zone, that give no zone of the database its name."""
_NUMERALS: Final = {numeral: number for number, numeral in enumerate("零一二三四五六七八九十")} | {
    "十一": 11,
    "十二": 12,
}
_BY_DISTANCE: Final = re.compile(r"(?:utc|gmt)\s*(?P<sign>[+\-−])\s*(?P<hours>\d{1,2})(?::?00)?", re.IGNORECASE)
_BY_ZONE_NUMBER: Final = re.compile(r"(?P<side>[东東西])(?P<hours>十[一二]?|[零一二三四五六七八九]|\d{1,2})[区區]")
_WORDS_AROUND: Final = re.compile(r"^(?:the )|(?:时区|時區|时间|時間|市| time ?zone| time)$", re.IGNORECASE)
_MOST_HOURS: Final = {"+": 14, "-": 12}


def told(subject: str, attribute: str, value: str) -> str | None:
    """The zone that a line of the profile tells about its owner, None if it tells none."""
    return zone_named(value) if subject == SELF and attribute in TELLING else None


def zone_named(words: str) -> str | None:
    """The IANA name of the zone that ``words`` name, None where none or more than one has the name."""
    place = _WORDS_AROUND.sub("", " ".join(words.split()).strip(" .。!！")).strip()
    if not place or len(place) > LONGEST:
        return None
    return _names().get(_spelt(place)) or _distant(place)


def shown(owner: Account, *, private: bool, at: datetime) -> str:
    """The owner's zone as it may be named at ``at``: in a group by its distance from UTC, for its name tells a place.

    One that is the operator's default tells nothing of anybody.
    """
    if private or owner.zone_from == "default":
        return owner.zone
    offset = at.astimezone(ZoneInfo(owner.zone)).strftime("%z")
    return f"UTC{offset[:3]}:{offset[3:5]}"


def _distant(words: str) -> str | None:
    """A zone by its distance from UTC. East 8 is China's own word for its time; others keep to no summer time."""
    if found := _BY_DISTANCE.fullmatch(words):
        sign, hours = "+" if found["sign"] == "+" else "-", int(found["hours"])
    elif found := _BY_ZONE_NUMBER.fullmatch(words):
        if found["side"] != "西" and found["hours"] in {"八", "8"}:
            return "Asia/Shanghai"
        numeral = found["hours"]
        sign, hours = (
            "-" if found["side"] == "西" else "+",
            _NUMERALS[numeral] if numeral in _NUMERALS else int(numeral),
        )
    else:
        return None
    if hours > _MOST_HOURS[sign]:
        return None
    # In the zone database the sign is the other way round: Etc/GMT-8 is ahead of UTC.
    return f"Etc/GMT{'-' if sign == '+' else '+'}{hours}" if hours else "Etc/UTC"


@cache
def _names() -> dict[str, str]:
    """Every name of a zone, in one spelling: its own, the city's in it, and those of this file's tables."""
    zones = available_timezones()
    # Further parts are towns of one state ("America/Indiana/Knox"), which few people mean by their name.
    cities = [zone for zone in zones if zone.startswith(_AREAS) and zone.count("/") == 1]
    names = {_spelt(zone.partition("/")[2]): zone for zone in cities}
    names |= {_spelt(zone): zone for zone in zones}
    names |= {place: zone for zone, places in _ENGLISH.items() for place in places.split("|")}
    return names | {place: zone for zone, places in _CHINESE.items() for place in places.split()}


def _spelt(name: str) -> str:
    return folded(name.replace("_", " "))
