"""Chinese time words. Simplified characters only: traditional ones are folded before (lexer).

Many of these characters are part of other words (周期, 3号线, 三月天, 第三点), so a row says what may not
stand beside it.
"""

from __future__ import annotations

import re
from typing import Final

from memory.dates.clock import Hours, clock
from memory.dates.lexeme import DIGITS, Every, Lexeme, Round, any_of, initials, mark, table
from memory.dates.numerals import HAN_RUN, amount, digits, number

DAYS: Final = {
    "大前天": -3, "前天": -2, "前日": -2, "昨天": -1, "昨日": -1, "昨儿": -1,
    "今天": 0, "今日": 0, "今儿": 0, "明天": 1, "明日": 1, "明儿": 1, "后天": 2, "大后天": 3,
}  # fmt: skip
PARTS: Final = {
    "凌晨": (0, 6), "清晨": (5, 9), "清早": (5, 9), "一早": (5, 9), "早上": (6, 12), "早晨": (6, 12),
    "上午": (6, 12), "中午": (11, 14), "下午": (12, 18), "午后": (12, 18), "傍晚": (17, 20),
    "晚上": (18, 24), "夜里": (18, 30), "夜晚": (18, 30), "深夜": (22, 30), "半夜": (22, 30),
}  # fmt: skip
"""Hours after midnight; a night ends in the morning after."""
DAY_PARTS: Final = {
    f"{day}{part}": (offset, hours)
    for day, offset in {"前": -2, "昨": -1, "今": 0, "明": 1, "后": 2}.items()
    for part, hours in {"早": (6, 12), "晨": (5, 9), "晚": (18, 30), "夜": (18, 30), "晚上": (18, 30)}.items()
    if day not in "前后" or part == "晚"
}
YEARS: Final = {
    "大前年": -3, "前年": -2, "去年": -1, "今年": 0, "本年": 0, "明年": 1, "后年": 2, "大后年": 3,
}  # fmt: skip
SEASONS: Final = {
    "春天": 3, "春季": 3, "夏天": 6, "夏季": 6, "秋天": 9, "秋季": 9, "冬天": 12, "冬季": 12,
}  # fmt: skip
"""First month, in the northern hemisphere."""
FEASTS: Final = {
    "元旦": (1, 1), "情人节": (2, 14), "劳动节": (5, 1), "儿童节": (6, 1), "国庆节": (10, 1),
    "万圣节": (10, 31), "平安夜": (12, 24), "圣诞节": (12, 25), "跨年夜": (12, 31),
}  # fmt: skip
"""Month and day of feasts of the solar year; the lunar ones would need a calendar of their own."""
WEEKDAYS: Final = {character: n for n, character in enumerate("一二三四五六日")} | {"天": 6}

_NEAR: Final = {"上上": -2, "上": -1, "这": 0, "本": 0, "下": 1, "下下": 2}


def _relative(*units: str) -> dict[str, int]:
    return {
        f"{near}{link}{unit}": offset
        for near, offset in _NEAR.items()
        for link in ("", "一", "个", "一个")
        for unit in units
    }


_WEEK: Final = "(?:周|星期|礼拜)"
WEEKS: Final = _relative("周", "星期", "礼拜")
_COUNTED: Final = "次|个|遍|节|趟|回(?![来家国去老学校公乡程信京沪])|块|千|百|人|位|只|件"
WEEKDAY: Final = (
    rf"(?:一(?!起(?!飞|床)|共|直|样|定|般|旦|下子|{_COUNTED})|[二三四五六](?!手|川|{_COUNTED})"
    r"|日(?!本(?![月周来])|语|文|常|程|用)|天(?!气|文))"
)
"""Last character of a weekday; "上周一起", "下周天气" and "一周三次" hold none."""

_ALONE: Final = "(?![二三四五六日](?![点个天年月十]))"
"""No list of weekdays (周一三五), which tells of a habit."""

NUMERAL: Final = rf"(?:\d{{1,4}}|{HAN_RUN}{{1,6}}|半)"
UNIT: Final = (
    "(?:个半?(?:月|星期|礼拜|小时|钟头|周末)|天|日(?=[前后之以内])|周(?!末|年|岁|期|边|围)|星期|礼拜"
    "|年(?!级|代|轻|纪|龄|份|初|底|末|终|度)|小时|钟头|分钟|刻钟)半?"
)
_NUMERALS: Final = DIGITS + "零〇一二两三四五六七八九十百千"
_AFTER_UNIT: Final = "(?<=[天日周期拜月年时头钟半末])"
_HOUR: Final = r"(?:\d{1,2}|十[一二]?|二十[一二三四]?|[零一二两三四五六七八九])"
_A_BIT: Final = (
    r"(?<![上午间夜里晨天日号早晚一二三四五六])一点(?![钟整半\d十])|(?<=(?<![今明昨前])[早晚])一点(?![钟整半])"
)
_MINUTE: Final = r"(?:[0-5]?\d|[二三四五]?十[一二三四五六七八九]?|零[一二三四五六七八九])"
_MONTH: Final = "(?:1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])月"
_NOT_CLOCK: Final = r"建议|意见|要求|原因|理由|好处|问题|想法|感受|希望|注意|都|也|儿|点|没|不|[一二三四五六七八九\d]"
_NOT_DAYNO: Final = "楼|线|店|房|馆|院|车|位|机|桌|球|选|码|航|电|厅|厂|台|柜|仓|床|病|门|出口|公|文|字|战|坑"
_SHORT_YEAR: Final = r"(?:0\d|[5-9]\d)年(?!代|级|轻|纪|龄|前|后|来|间|多|以|之|的?历史|了)|[1-4]\d年(?=\d{1,2}月)"
_DAY_LIST: Final = rf"{WEEKDAY}(?:[、,，和及到至-]?{_WEEK}?{WEEKDAY})*"
_NTH: Final = rf"每(?:个|一个?)?月的?(?:第[一二三四]|最后一)个?{_WEEK}{WEEKDAY}"
_EVERY: Final = (
    rf"{_NTH}|(?:每逢?|逢)隔?(?:{HAN_RUN}个?|\d{{1,2}}个?|个)?(?:周末|{_WEEK}(?:{_DAY_LIST})?|工作日|天|日|晚上?|早上?|月|年)"
    r"|隔一?个?(?:周|星期|礼拜|天|日|月|年)|工作日(?=的?(?:凌晨|早|上午|中午|下午|傍晚|晚|都|每|[0-9一二三四五六七八九十]))|天天"
)
_EVERY_PIECES: Final = re.compile(
    rf"(?:每逢?|逢)?(?P<apart>隔)?(?P<n>{HAN_RUN}(?=个|周|星期|礼拜|天|日|月|年)|\d+)?个?"
    r"(?P<unit>周末|周|星期|礼拜|工作日|天|日|晚上?|早上?|月|年)"
)
_EVERY_WHOLE: Final[dict[str, Round]] = {"工作日": "weekday", "天天": "day"}
_EVERY_UNITS: Final[dict[str, tuple[Round, Hours | None]]] = {
    "周": ("week", None), "星期": ("week", None), "礼拜": ("week", None), "周末": ("weekend", None),
    "工作日": ("weekday", None), "天": ("day", None), "日": ("day", None), "月": ("month", None),
    "年": ("year", None), "晚": ("day", (18, 30)), "晚上": ("day", (18, 24)), "早": ("day", (6, 12)),
    "早上": ("day", (6, 12)),
}  # fmt: skip


def _year(text: str) -> int:
    value = digits(text.removesuffix("份").removesuffix("年"))
    return value if value > 99 else value + (1900 if value >= 50 else 2000)  # noqa: PLR2004


def _weekday_of_week(text: str) -> tuple[int, int]:
    return WEEKS[text[:-1]], WEEKDAYS[text[-1]]


def _stretch(text: str) -> str:
    return "last" if re.match("过去|最近|近", text) else "next"


def _count(text: str) -> int | None:
    return number(re.sub("[份号日]$", "", text).removesuffix("月"))


def _rim(text: str) -> tuple[str, str]:
    return {"月": "month", "年": "year"}[text[0]], EDGES[text[1]]


def _every(text: str) -> Every:
    """Read 每天, 每晚, 每两周, 隔天, 每隔一天, 每周一三五, 每周一到周五, 工作日, 每月第一个周一."""
    if text in _EVERY_WHOLE:
        return Every(_EVERY_WHOLE[text])
    if nth := re.search("第(.)|最后", text):
        return Every("month", weekdays=(WEEKDAYS[text[-1]],), nth=number(nth[1]) if nth[1] else -1)
    found = _EVERY_PIECES.match(text)
    if found is None:  # 每逢 before a day that another word names
        return Every(None)
    interval = (number(found["n"] or "一") or 1) + (1 if found["apart"] else 0)
    unit, part = _EVERY_UNITS[found["unit"]]
    return Every(unit, interval, _listed(text[found.end() :]), part)


def _listed(text: str) -> tuple[int, ...]:
    """Numbers of the weekdays in "一三五", "二和周四", "一到周五"."""
    days = [WEEKDAYS[character] for character in text if character in WEEKDAYS]
    if re.search("[到至-]", text):
        return tuple(range(days[0], days[-1] + 1))
    return tuple(sorted(set(days)))


EDGES: Final = {"初": "early", "上旬": "early", "中旬": "mid", "下旬": "late", "底": "late", "末": "late"}

LEXEMES: Final[tuple[Lexeme, ...]] = (
    Lexeme(
        "clock",
        _NUMERALS,
        rf"(?<![\d.第这那几有])(?!{_A_BIT}){_HOUR}点(?:钟|整|半|[一三]刻|{_MINUTE}分?)?(?!{_NOT_CLOCK})|\d{{1,2}}时\d{{1,2}}分",
        clock,
    ),
    table("daypart", DAY_PARTS, but="餐|饭|会|点"),
    table("day", DAYS, but="性|免疫|习得"),
    Lexeme("weekpart", initials(WEEKS), any_of(WEEKS) + WEEKDAY + _ALONE, _weekday_of_week),
    table("weekend", _relative("周末") | {"周末": None}),
    table("week", WEEKS, but="年|围|边|转|折|岁|刊|报|长|期[^一二三四五六日天]"),
    table("halfyear", {"上半年": 1, "下半年": 7}),
    table("nearmonth", _relative("月"), but="亮|光|台"),
    table("nearyear", YEARS, but="级|度|代"),
    Lexeme(
        "year",
        DIGITS + "一二",
        rf"(?<![\d了近约过])(?:(?:(?:19|20)\d\d|[一二][九〇零][〇零一二三四五六七八九]{{2}})年(?:份|(?!代|级))|{_SHORT_YEAR})",
        _year,
    ),
    table("feast", FEASTS, but="树|礼|帽|卡|歌|装"),
    Lexeme(
        "weekday",
        "周星礼",
        rf"(?<![一两二三四五六七八九十\d]){_WEEK}{WEEKDAY}{_ALONE}",
        lambda text: WEEKDAYS[text[-1]],
    ),
    Lexeme("every", "每逢隔工天", _EVERY, _every),
    Lexeme("amount", _NUMERALS + "半", rf"(?<![第\d.]){NUMERAL}{UNIT}", amount),
    Lexeme("month", _NUMERALS, rf"(?<![\d个十百.]){_MONTH}份?(?!亮|饼|光|球|薪|租|费|票|刊|嫂|天(?!气)|经)", _count),
    Lexeme("dayno", _NUMERALS, rf"(?<![\d第])(?:\d{{1,2}}|{HAN_RUN}{{1,3}})号(?!{_NOT_DAYNO})", _count),
    Lexeme("ordinal", _NUMERALS, rf"(?<![\d第])(?:\d{{1,2}}|{HAN_RUN}{{1,3}})日(?!元|本|游|内|后|前|化)", _count),
    table("season", SEASONS),
    Lexeme("near", "过最近未接今", rf"(?:过去的?|最近的?|近|未来|接下来的?|今后)(?={NUMERAL})", _stretch),
    mark("preceding", "前", rf"(?<![提之以])前(?=(?:[两二三四五六七八九十半]|\d+){UNIT})"),
    mark("ago", "之以前", rf"{_AFTER_UNIT}(?:之前|以前|前(?!面|台|者|男|女|夫|妻|任|额|景|途|后))"),
    mark("hence", "之以过后", rf"{_AFTER_UNIT}(?:之后|以后|过后|后(?!面|台|悔|来|果|天|年|门|背|续|者|期|勤|卫|代))"),
    mark("within", "之以内", rf"{_AFTER_UNIT}(?:之内|以内|内)"),
    mark("lapse", "再过", rf"(?:再过|(?<!\w)过(?!两天))(?={NUMERAL})"),
    Lexeme("edge", initials(EDGES), "(?<=[月年份])(?:初|上旬|中旬|下旬|底|末)", EDGES.__getitem__),
    Lexeme("rim", "月年", "[月年][初底末](?!线)", _rim),
    mark("since", "自", r"自从|自(?=[12一二去前今上昨])"),
    mark("to", "到至—–~-", "到|至|[—–~-]"),
    mark("and", "和、及或与&", "[和、及或与&]"),
    mark("on", "从", "从"),
    mark("at", "在", "在"),
    table("part", PARTS),
    Lexeme(
        "number",
        _NUMERALS,
        r"(?<=月)(?:\d{1,2}(?![\d.:年月天岁元块个人次点分%万千百])|[一二三]?十[一二三四五六七八九]?(?![个人天次块元岁月年]))",
        number,
    ),
)
"""In the order in which they are tried at one place: longer readings first."""
