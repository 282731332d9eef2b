"""Checks on words, for rules and for the verifier of distillation: secrets, orders, language, support. All pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

import stdnum.cn.ric
import stdnum.luhn
import stdnum.us.ssn

from memory.script import folded, language, visible

LONGEST_CHECKED: Final = 20_000
"""Characters looked at; a memory is far shorter, and a longer text is no memory."""


def _one_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("(?:" + "|".join(patterns) + ")")


# --- secrets -----------------------------------------------------------------------------------------------------

# Lengths and prefixes of the networks under ISO/IEC 7812: Visa, Mastercard, Amex, Discover, JCB, Diners, UnionPay.
_CARD: Final = re.compile(
    r"4\d{12}(?:\d{3})?(?:\d{3})?|5[1-5]\d{14}|2(?:2[2-9]|[3-6]\d|7[01])\d{13}|3[47]\d{13}"
    r"|6(?:011|5\d\d|4[4-9]\d)\d{12,15}|35\d{14,17}|3(?:0[0-5]|[689]\d)\d{11}|62\d{14,17}"
)
_SHORTEST_CARD: Final = 12
_UNIONPAY: Final = re.compile(r"62\d{14,17}")
_DIGITS: Final = re.compile(r"(?<![\d.])\d(?:[ \-–]?\d){7,24}(?![\d])")
_CARD_WORDS: Final = re.compile(
    r"(?:银行|信用|储蓄|借记)?卡号|(?:bank|credit|debit) ?card|card (?:number|no)|银行账号|iban|"
    r"account number"
)
_NO_SECRET_WORDS: Final = re.compile(
    r"订单|运单|快递|单号|票号|航班|车次|预订|会员|手机|电话|order|ticket|tracking|booking|flight|"
    r"invoice|reservation|parcel|phone|isbn|imei"
)
_CHINESE_ID: Final = re.compile(r"(?<!\d)\d{17}[\dx](?![\dx])")
_ID_WORDS: Final = re.compile(
    r"身份证|护照号|社保号|驾照号|社会保险号|passport (?:number|no)|social security|\bssn\b|national "
    r"id|id card|identity (?:card|number)|driver'?s licen[cs]e (?:number|no)|tax id"
)
_ID_NUMBER: Final = re.compile(r"(?<![a-z\d])(?=[a-z]{0,2}[\d -]{0,20}\d{3})[a-z]{0,2}\d(?:[ -]?\d){5,17}x?(?![a-z\d])")
_SSN: Final = re.compile(r"(?<!\d)\d{3}-\d{2}-\d{4}(?!\d)")
_ONE_TIME: Final = _one_of(
    r"(?:验证码|校验码|动态码|动态密码|安全码|取款密码)\D{0,16}\d(?:[ -]?\d){2,8}(?!\d)",
    r"(?:(?:verification|security|login|auth(?:entication)?|2fa|sms|door|gate|alarm|unlock) code"
    r"|one[- ]time (?:code|pass\w*)"
    r"|\botp\b|\bcv[vc]2?\b)\D{0,16}\d(?:[ -]?\d){2,8}(?!\d)",
    r"\bcode (?:i|they|it)[a-z' ]{0,16}(?:texted|sent|emailed|got)(?: me)?(?: is|:) ?\d(?:[ -]?\d){3,7}(?!\d)",
    r"(?<!\d)\d{4,8}\D{0,8}(?:是(?:我的|你的)?验证码|is (?:your|my|the) (?:\w+ ){0,2}code)",
)
_VALUE: Final = (
    r"(?:[^\n]{0,24}?(?:是|为|改成了?|设成了?|设为|[:=]|\bis\b|\bare\b|\bto\b)"
    r"|\s(?=\S*\d)|(?=[!-~]{6,})(?=[!-~]*\d))\s*[\"'“「]?(?P<word>\S+)"
)
_PASSWORD: Final = re.compile(
    _one_of(
        r"密码|口令|助记词",
        r"pass ?word|passcode|passwd|pass ?phrase|\bpwd?\b|secret word|(?:seed|recovery) phrase",
    ).pattern
    + r"(?! ?(?:manager|reset|policy|field|hint|generator|app\b))"
    + _VALUE
)
# What names a machine's key is said of recipes and badges, too: only a word that looks like one counts.
_TOKEN: Final = re.compile(
    _one_of(
        r"私钥|密钥|令牌|(?<![a-z])pin(?: code| number|码)?(?![a-z])",
        r"(?:api|access|private|secret|encryption) ?key|(?:access|auth|api|bot) ?token|client ?secret",
    ).pattern
    + _VALUE
)
_BARE_KEY: Final = re.compile(r"(?<![a-z])(?:key|token|secret)(?![a-z])" + _VALUE)
_TOKEN_LIKE: Final = re.compile(r"(?=\S*\d)[\x21-\x7e]{3,}|[\x21-\x7e]{20,}")
_LONG_TOKEN: Final = re.compile(r"(?=\S*\d)[\w.~+/=-]{20,}|[\w.~+/=-]{32,}", re.ASCII)
_NO_PASSWORD: Final = re.compile(
    r"[什多啥哪错不忘谁怎几要空弱太强吗在?？]|对的|一样|必须"
    r"|(?:too|weak|strong|wrong|incorrect|not|the|an?|my|your|always|being|expired|required|invalid|secure|safe"
    r"|forgotten|lost|manager|reset|protected|something|what|why|how|in|on|for|and|or|to|long|short|easy|hard|never|stored|same"
    r"|change|of|that|was|is|are)(?![a-z\d])"
)
# Shapes as their issuers document them. A rule of entropy would call order numbers, hashes and file names secrets:
# on tests/cases/secrets.jsonl detect-secrets 1.5.0 told 16 of 49 keys and passwords by its shapes; with its rules of
# entropy it told all, and cried at 61 of 70 harmless lines.
_KEY: Final = re.compile(
    _one_of(
        r"-----BEGIN [A-Z ]*PRIVATE KEY",
        r"\bsk-(?:proj-|ant-|or-)?[\w-]{20,}",
        r"\b(?:gh[opusr]|npm)_[A-Za-z0-9]{36}|\bgithub_pat_\w{22,}|\bglpat-[\w-]{20}|\bpypi-[\w-]{40,}",
        r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\b[Aa][Ww][Ss].{0,20}[Ss]ecret.{0,20}?[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])",
        r"\bAIza[\w-]{35}|\bya29\.[\w-]{20,}|\bhf_[A-Za-z]{30,}|\bAccountKey=[A-Za-z0-9+/]{40,}",
        r"\bxox[abeprs]-[\w-]{10,}|\bxapp-\d-[\w-]{20,}|\bhooks\.slack\.com/services/T\w+/B\w+/\w{20,}",
        r"\b[rs]k_(?:live|test)_\w{16,}|\bSG\.[\w-]{22}\.[\w-]{43}|\bSK[0-9a-f]{32}\b|\b[0-9a-f]{32}-us\d{1,2}\b",
        r"\b\d{8,10}:AA[\w-]{33}|\b[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,}",
        r"\bdo[opr]_v1_[0-9a-f]{64}|\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}|\btskey-[a-z]+-[\w-]{16,}",
        r"\b(?:lin_api|gsk|secret|ntn|dckr_pat|sntrys|figd|rnd|vercel|sbp|re)_[\w-]{24,}|\bhvs\.[\w-]{20,}",
        r"\b[a-z]{2,10}_(?=\w*[a-z])(?=\w*[A-Z])(?=\w*\d)[A-Za-z0-9]{32,}\b|\b[\w-]{14,32}\.[0-9a-f]{64}\b",
        r"\b[ps]k\.[\w-]{40,}\.[\w-]{20,}|\bdiscord(?:app)?\.com/api/webhooks/\d+/[\w-]{40,}",
        r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{5,}|\b[Bb]earer [\w.~+/-]{20,}",
        r"\b[a-z]{2,12}://[^\s:/@]{1,64}:[^\s:/@]{1,64}@",
    ).pattern,
    re.ASCII,  # Han letters beside a key are no part of it: 密钥是sk-…
)


def secret(text: str) -> str | None:
    """Return which kind of secret a text holds, or None.

    Kinds: "card", "identity", "password", "code" (one-time), "key". Order, ticket, flight, parcel and phone
    numbers are none. Card numbers are told by length, prefix and check digit (Luhn) or by the words around
    them, Chinese identity numbers by their check digit (ISO 7064) or the words, others by the words.
    """
    text = "".join(part for character in text[:LONGEST_CHECKED] for part in visible(character))
    plain = folded(text)
    if _KEY.search(text):
        return "key"
    if _ONE_TIME.search(plain):
        return "code"
    if any(_is_password(found["word"]) for found in _PASSWORD.finditer(plain)):
        return "password"
    if any(_TOKEN_LIKE.match(found["word"]) for found in _TOKEN.finditer(plain)):
        return "password"
    if any(_LONG_TOKEN.match(found["word"]) for found in _BARE_KEY.finditer(plain)):
        return "password"
    if _has_identity_number(plain):
        return "identity"
    return "card" if _has_card_number(plain) else None


def _is_password(word: str) -> bool:
    bare = word.strip("\"'“”「」.,;!。，；！")
    return len(bare) > 1 and not _NO_PASSWORD.match(word)


def _has_identity_number(plain: str) -> bool:
    if any(stdnum.cn.ric.is_valid(number.upper()) for number in _CHINESE_ID.findall(plain)):
        return True
    if not _ID_WORDS.search(plain):
        return False
    return any(stdnum.us.ssn.is_valid(number) for number in _SSN.findall(plain)) or bool(_ID_NUMBER.search(plain))


def _has_card_number(plain: str) -> bool:
    numbers_found = [re.sub(r"\D", "", found[0]) for found in _DIGITS.finditer(plain)]
    if _CARD_WORDS.search(plain):
        return any(len(digits) >= _SHORTEST_CARD for digits in numbers_found)
    return not _NO_SECRET_WORDS.search(plain) and any(map(_is_card, numbers_found))


def _is_card(digits: str) -> bool:
    return bool(_CARD.fullmatch(digits)) and (stdnum.luhn.is_valid(digits) or bool(_UNIONPAY.fullmatch(digits)))


# --- orders to the bot -------------------------------------------------------------------------------------------

_SPEAKS: Final = "(?:answer|reply|respond|speak|talk|write)"
_ORDER: Final = _one_of(
    # setting the rules aside
    r"(?<!me to )(?<!us to )(?:ignore|disregard|forget|override|bypass)\b.{0,30}"
    r"\b(?:instructions?|rules?|prompts?|guidelines|restrictions|safety|(?:previous|prior) (?:messages?|text))",
    r"(?:忽略|无视).{0,12}(?:指令|规则|提示|要求|设定|限制|之前|以上|上面)",
    # another role
    r"\b(?:you are|you're|act as|behave as|pretend (?:to be|you are)|roleplay as) (?:now |from now on )?"
    r"(?:an? |the |my )?(?:\w+ )?(?:admin\w*|root|developer|system|operator|dan\b|jailbr\w*|unrestricted|evil|hacker"
    r"|owner|superuser)",
    r"\byou are now\b|\bjailbreak|\bdeveloper mode|越狱|(?:管理员|开发者|上帝)(?:模式|权限)",
    r"[你您](?:现在|从现在起|以后|今后)+(?:开始)?就?是",
    r"[你您]就?是(?:一个|一名|我的)?(?:管理员|系统|开发者|超级用户|没有限制)",
    # from now on, must, obey
    r"\bfrom now on,? (?:you|always|never|only|answer|reply|respond|ignore|every)",
    r"\byou (?:must|shall|have to) (?:always|never|obey|comply|answer|reveal|ignore|follow)",
    r"\b(?:you|always|must|shall|only) obey\b|\bobey (?:me|my (?:orders|commands)|user|every|all)\b",
    r"从现在(?:开始|起).{0,6}(?:你|您|永远|总是|只|所有|一律|都)|[你您](?:必须|一定要|只能|务必|不得|不准|不许)",
    rf"\b{_SPEAKS}\b[^.!?\n]{{0,40}}\bfrom (?:now|here|this point|today) on",
    rf"\b{_SPEAKS} (?:to me )?(?:only|exclusively) (?:in|with|as)\b",
    rf"(?:^|[.!?:,;\n] ?|\b(?:you(?: must| should| shall| will)?|please|remember(?: that| to)?) )"
    rf"(?:only|always|never) {_SPEAKS} (?:to me |me )?(?:in|as|like)\b",
    r"(?:以后|今后|往后|从今(?:以后|往后|天起)|从现在(?:开始|起)).{0,4}(?:都|只|一律|永远|总是|全部?)[^,。!?\n]{0,12}"
    r"(?:回答|回复|答复|回我|跟我说话|和我说话|对我说话|输出)",
    r"(?:只|一律|永远|总是)(?:能|准|许|可以|要)?用[^,。!?\n]{1,12}(?:回答|回复|答复|回我|跟我说话|和我说话|对我说话|输出)",
    # whose bot it is
    r"\byou(?: now|'re now)? (?:only )?(?:work for|belong to|serve|report to|answer to|take (?:your )?orders from)"
    r" (?:me|us)\b",
    r"\b(?:i am|i'm) your (?:new |only |real |true )?(?:master|owner|boss|creator|admin\w*|developer)\b",
    r"[你您](?:现在|从现在起|以后|今后|从今往后|开始)*(?:只|都|得|要)+(?:听|听从|听命|归|属于|服务于?|效忠于?|为)+我",
    r"[你您](?:现在|从现在起|以后|今后)+(?:是|为|归|听|属于|替)我",
    r"我(?:现在|才|以后)*是[你您]的(?:新)?(?:主人|老板|管理员|开发者|创造者|上级)",
    r"(?:一律|必须|只|永远|无条件|绝对)(?:服从|听从|听命)|(?:服从|听从|听命于?)(?:我|用户|管理员|\d|一切|所有|命令|指令)",
    r"一律(?:服从|回答|执行|同意)",
    # the prompt itself, and other people's memory
    r"\bsystem (?:prompt|message|instruction)|(?:^|\n)\W{0,3}(?:system|assistant|developer)\s*:",
    r"系统(?:提示|指令|消息)|提示词",
    r"\b(?:reveal|print|output|leak|show) (?:me )?(?:(?:all|your|the) ){0,3}"
    r"(?:prompt|instructions?|secrets?|(?:other )?users?'? (?:facts|data|memor\w+))",
    r"\b(?:delete|erase|forget|reveal|list|show) (?:all|every|the) (?:\w+ )?(?:users?|people|everyone|others)\b",
    r"(?:忘记|忘掉|删除|泄露|公开|说出|告诉我?).{0,4}(?:所有|其他|别的|全部)(?:用户|人)",
    # the marks of a prompt
    r"</?(?:system|memory|instructions?|s|im_start|im_end)\b|<\|\w+\|>|\[/?inst\]|###\s*(?:instruction|system)",
    r"\"(?:facts|role|content|memory)\"\s*:",
)


def instruction(text: str) -> bool:
    """Whether a text orders the bot about (ignore previous, you are now, 服从, from now on always …).

    A wish about the style of answers ("short answers please", 回答简短一点) is a preference and no order.
    """
    return _ORDER.search(folded(text[:LONGEST_CHECKED])) is not None


# --- language ----------------------------------------------------------------------------------------------------


def same_language(first: str, second: str) -> bool:
    """Whether two texts are in one language; a text of neither language (digits, emoji) goes with any."""
    one, other = language(first), language(second)
    return one is None or other is None or one == other


# --- support -----------------------------------------------------------------------------------------------------

_DIGIT_OF: Final = {
    "零": 0,
    "〇": 0,
    "一": 1,
    "二": 2,
    "两": 2,
    "三": 3,
    "四": 4,
    "五": 5,
    "六": 6,
    "七": 7,
    "八": 8,
    "九": 9,
}
_UNIT_OF: Final = {"十": 10, "百": 100, "千": 1_000}
_GROUP_OF: Final = {"万": 10_000, "亿": 100_000_000}
_FROM_TWO: Final = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen twenty"
)
_FROM_THIRTY: Final = "thirty forty fifty sixty seventy eighty ninety"
_ENGLISH_OF: Final = {word: number for number, word in enumerate(_FROM_TWO.split(), start=2)} | {
    word: tens * 10 for tens, word in enumerate(_FROM_THIRTY.split(), start=3)
}
_UNITS_OF: Final = _UNIT_OF | _GROUP_OF
# 5千克 and 3千米 are kilograms and kilometres, no thousands.
_ARABIC: Final = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?P<units>(?:百|千(?![克米瓦卡赫]))?[万亿]?)")
_NUMERAL: Final = "零〇一二两三四五六七八九十百千万亿"
_DIGIT: Final = "[一二两三四五六七八九]"
_BELOW_10_000: Final = (
    rf"(?=[零〇一二两三四五六七八九十])(?:{_DIGIT}千)?[零〇]?(?:{_DIGIT}百)?[零〇]?(?:{_DIGIT}?十)?[零〇]?{_DIGIT}?"
)
_CHINESE: Final = re.compile(
    rf"(?P<digits>[零〇一二三四五六七八九]{{2,}}(?![{_NUMERAL}]))"
    rf"|{_BELOW_10_000}(?:[万亿]{{1,2}}(?:{_BELOW_10_000})?){{0,4}}"
)
_ORDINARY: Final = re.compile(
    rf"(?<![第{_NUMERAL}])(?:(?<![点时])十分(?![钟之])|万一|三心二意|七上八下|乱七八糟|五花八门|四处|四周|两口子|二手"
    r"|三明治|四川|九江)"
)
_SHORTENING: Final = {"百": 100, "千": 1_000} | _GROUP_OF
_BEFORE_ONE: Final = frozenset("第周期拜初")
_AFTER_ONE: Final = frozenset("月日号点岁楼")
_AFTER_SHORT_ONE: Final = frozenset("块元")
_ENGLISH: Final = re.compile(rf"\b(?:{'|'.join(_ENGLISH_OF)})\b")


def numbers(text: str) -> set[str]:
    """Return the numbers of a text in plain decimal: "1,000", 一千 and １０００ are all "1000".

    Arabic numerals of any width, Chinese numerals with units (十八, 两千, 3万, 两万五 for 25,000) or digit by
    digit (二〇二四), English words from two to ninety. A lone 一 or "one" counts nothing: it is an article more
    often than a number.
    """
    plain = folded(text[:LONGEST_CHECKED])
    found = {_arabic(each) for each in _ARABIC.finditer(plain)}
    found |= {str(_ENGLISH_OF[word]) for word in _ENGLISH.findall(plain)}
    return found | set(_chinese(plain))


def _arabic(found: re.Match[str]) -> str:
    number = Decimal(found[0].removesuffix(found["units"]).replace(",", ""))
    for unit in found["units"]:
        number *= _UNITS_OF[unit]
    return _plain_decimal(f"{number:f}")


def _plain_decimal(digits: str) -> str:
    whole, point, rest = digits.partition(".")
    return (whole.lstrip("0") or "0") + (point + rest.rstrip("0") if rest.strip("0") else "")


def _chinese(plain: str) -> Iterator[str]:
    plain = _ORDINARY.sub(" ", plain)
    for found in _CHINESE.finditer(plain):
        numeral, after = found[0], plain[found.end() : found.end() + 1]
        if digits := found["digits"]:
            if digits.strip("一"):
                yield _plain_decimal("".join(str(_DIGIT_OF[digit]) for digit in digits))
        elif numeral != "一":
            yield str(_value(_without_article(numeral, after)))
        elif plain[max(found.start() - 1, 0) : found.start()] in _BEFORE_ONE or after in _AFTER_ONE:
            yield "1"


def _without_article(numeral: str, after: str) -> str:
    """Drop the 一 of 三百一晚 (300 a night), keep that of 三百一 (310) and 一千零一夜."""
    article = numeral[-1] == "一" and numeral[-2] in _SHORTENING and after.isalpha() and after not in _AFTER_SHORT_ONE
    return numeral[:-1] if article else numeral


def _value(numeral: str) -> int:
    """The value of a well-formed numeral; a digit that ends it behind a unit counts tenths of that (两万五)."""
    total = section = digit = 0
    for character in numeral:
        if character in _DIGIT_OF:
            digit = _DIGIT_OF[character]
        elif character in _UNIT_OF:
            section, digit = section + (digit or 1) * _UNIT_OF[character], 0
        elif character == "万":
            total, section, digit = total + (section + digit) * _GROUP_OF[character], 0, 0
        else:
            total, section, digit = (total + section + digit) * _GROUP_OF[character], 0, 0
    return total + section + digit * _SHORTENING.get(numeral[-2:-1], 10) // 10


_CAPITAL: Final = re.compile(r"(?<![\w'])[A-Z][\w'’-]*")
_SENTENCE_START: Final = re.compile(r"(?:^|[.!?:]\s+|[。！？：\n]\s*|[\"“「(]\s*)$")
_ACTS: Final = re.compile(r"\s+(?:is|was|has|likes|loves|lives|works|and|wants|hates)\b|'s\b")
_COMMON_WORDS: Final = (
    "a an the user users they he she it i i'm my his her their our we you this that there in on at for from with and "
    "but prefers likes dislikes loves hates lives works wants has is was owns plans enjoys birthday "
    "name home job allergic"
)
_COMMON: Final = frozenset(_COMMON_WORDS.split())
_LATIN: Final = re.compile(r"[A-Za-z][\w'’-]*")
_CUED: Final = (
    re.compile(
        r"(?:名叫|叫做|名为|名字是|叫)(?P<name>[\u4e00-\u9fff]{2,4}?)(?=[^\u4e00-\u9fff]|$|的|是|在|，|今|"
        r"已|会|和|也|很|喜|住|来)"
    ),
    re.compile(
        r"(?:住在|来自|搬到了?|定居在?)(?P<name>[\u4e00-\u9fff]{2,6}?)(?=[^\u4e00-\u9fff]|$|的|了|工作|"
        r"上班|生活|人)"
    ),
    re.compile(r"[《“「『](?P<name>[^》”」』]{1,30})[》”」』]"),
)


def names(text: str) -> set[str]:
    """Return the proper names of a text, folded, as far as its form shows them.

    English: capitalised words, at the start of a sentence only when they act ("Elena is …"). Chinese: what
    follows 叫, 名字是, 住在, 来自 and 搬到, what stands in title or quotation marks, and every Latin word.
    """
    text = text[:LONGEST_CHECKED]
    if language(text) == "zh":
        cued = {folded(found["name"]) for pattern in _CUED for found in pattern.finditer(text)}
        return cued | {folded(word) for word in _LATIN.findall(text)}
    return {
        _bare(found[0])
        for found in _CAPITAL.finditer(text)
        if _bare(found[0]) not in _COMMON
        and (
            not _SENTENCE_START.search(text[max(found.start() - 4, 0) : found.start()])
            or _ACTS.match(text, found.end())
        )
    }


_OPENS: Final = re.compile(
    r"^(?P<word>[A-Z][a-z]+(?<!ing)(?:[ -][A-Z][a-z]+)*) (?:also |often |always |really )?[a-z]+(?<![sui])s\b"
)
_POINTS: Final = re.compile(
    r"[他她你您]|那[里儿边位]|\b(?:he|him|his|she|her|hers|they|them|their|you|your|yours|there)\b"
)


def opening_name(text: str) -> str | None:
    """Return the words that open an English sentence as somebody who does something ("Bruno collects ..."), folded.

    By its form alone it may be a thing as well ("Tea helps ..."); whoever asks has to know what else was said.
    """
    found = _OPENS.match(text)
    return _bare(found["word"]) if found and _bare(found["word"]) not in _COMMON else None


def points(text: str) -> bool:
    """Whether a text points at a person or a place that it does not name: with "she", "you", "there", 他, 那里."""
    return _POINTS.search(folded(text[:LONGEST_CHECKED])) is not None


def _bare(word: str) -> str:
    return re.sub(r"'s?$", "", folded(word))
