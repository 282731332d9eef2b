"""What a message asks of memory itself: to keep, to forget, to tell all, or nothing worth a search."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final, Literal

from memory import checks
from memory.model import Candidate, Citation
from memory.rules.grammar import any_of
from memory.rules.reader import candidates
from memory.rules.reading import MAX_CHARACTERS
from memory.rules.remembering import LONGEST_FACT, fact, seen
from memory.script import folded, visible


class Refused(ValueError):
    """What somebody asked to have remembered is not kept; ``reason`` says why, ``what`` which kind of secret."""

    def __init__(self, reason: Literal["empty", "too_long", "secret", "instruction"], what: str = "") -> None:
        super().__init__(f"{reason} {what}".strip())
        self.reason = reason
        self.what = what


def remember(
    text: str, *, message_id: int, at: datetime, language_hint: str | None = None, zone: str = "UTC"
) -> Candidate:
    """Return what ``/remember`` writes: the line or the event a rule reads in the whole text, else the text as a fact.

    ``at`` is aware UTC, ``zone`` the author's IANA time zone, in which days are counted. Raises
    Refused for a blank text, one over 500 characters, a secret, or an order to the bot.
    """
    words = seen(text[: LONGEST_FACT * 2]).strip()
    if not words:
        raise Refused("empty")
    if len(words) > LONGEST_FACT:
        raise Refused("too_long")
    if kind := checks.secret(words):
        raise Refused("secret", kind)
    if checks.instruction(words):
        raise Refused("instruction")
    lines = [
        line
        for line in candidates(text, message_id=message_id, at=at, language_hint=language_hint, zone=zone)
        if line.kind != "fact" and _covers(line.citations[0].quote, words)
    ]
    return lines[0] if len(lines) == 1 else fact(words, Citation(message_id, text.strip(), at))


def _covers(quote: str, words: str) -> bool:
    return len(re.sub(r"\W", "", folded(quote))) >= len(re.sub(r"\W", "", folded(words)))


_ZH_POLITE: Final = (
    any_of(r"请 麻烦 能不能 可不可以 能否 可以 能 帮我 帮忙 你 您 那 就 还是 现在 马上 对了 嗯 ok [,\s]") + "*"
)
_ZH_FORGET: Final = "(?:忘掉|忘记|忘了|忘|删掉|删除|删了|清除|抹掉|抹去)"
_ZH_END: Final = r"(?:掉|了)?(?:吧|可以吗|好吗|行吗|吗|好不好|行不行|谢谢|,|\s)*"
_FORGET_ZH: Final = (
    re.compile(
        rf"{_ZH_POLITE}(?:忘掉|删掉|删除|清除|抹掉)(?P<words>一切|全部|所有的?(?:事情?|东西|内容|记忆)){_ZH_END}"
    ),
    re.compile(rf"{_ZH_POLITE}把(?P<words>[^,?]{{1,60}}?)(?:都|全|全部|给我|给)?{_ZH_FORGET}{_ZH_END}"),
    re.compile(rf"{_ZH_POLITE}{_ZH_FORGET}(?P<words>(?:关于)?我[^,?]{{1,60}}?){_ZH_END}"),
    re.compile(
        rf"{_ZH_POLITE}(?:不要|别)再?(?:记得|记住|记着|保存|"
        rf"存)(?P<words>(?:关于)?我的[^,?]{{1,60}}?){_ZH_END}"
    ),
)
_EN_POLITE: Final = (
    r"(?:ok |okay |hey |hi |now |and |please |can you |could you |would you |will you |i want you to |"
    r"i'd like you to |i would like you to |just )*"
)
_EN_END: Final = r"(?: please| now| from (?:your )?memory| for me| ok| thanks| thank you)*"
_ALL_EN: Final = (
    r"(?:everything|all)(?: (?:(?:that )?you (?:know|remember|have)(?: stored| saved)?(?: (?:about|on|of) me)?"
    r"|(?:about|on|of) me|(?:that )?i(?:'ve| have)?(?: ever)? (?:said|told you)"
    r"|(?:of )?my (?:data|memories|messages)))?"
)
_LAST_EN: Final = r"what i(?:'ve| have)? just (?:said|told you|wrote)|the last thing i (?:said|told you)"
_FORGET_EN: Final = (
    re.compile(rf"{_EN_POLITE}(?:forget|erase|delete)(?: about)? (?P<words>{_ALL_EN}|{_LAST_EN}),?{_EN_END}"),
    re.compile(
        rf"{_EN_POLITE}"
        r"(?:forget|erase|delete|unlearn)(?: about)? (?P<words>(?:that |what i (?:said|told you) about |"
        r"everything about |the fact that )?(?:i|i'm|my|me|our)\b.{0,80}?)"
        rf"{_EN_END}"
    ),
)
_ACCUSED: Final = re.compile(
    r"怎么|为什么|是不是|有没有|居然|竟然|别忘|不要忘|不会忘|忘不|没忘|难忘|^我忘|^我把|^我不|^[你您]把.*忘(?:了|记了?)$|提示词|"
    r"指令|规则|所有(?:用户|人)|别人|instruction|prompt|rules?\b"
)
_UNASKED: Final = re.compile(
    r"^(?:my|our) (?:last|previous|first|second) "
    r"(?:sentence|paragraph|line|word|question|message)\b|\b(?:sentence|paragraph|line|file|code|typo|"
    r"comment|text)\b"
)
_NOTHING: Final = re.compile(r"[吧们了吗的]*|是谁|的?事情?")
_DETERMINER: Final = re.compile(
    r"^(?:关于)?我的?|^关于|^that i(?:'m| am)? |^(?:that |what i (?:said|told you) about |everything about |the "
    r"fact that )?(?:my|our) "
)


def wants_forgetting(text: str) -> str | None:
    """Return the words to forget if a message plainly asks for it ("phone number" of "please forget my phone number").

    None for what only sounds like it: 别忘了…, 我忘了密码, "I'll never forget…", "why did you forget my name?",
    and orders to forget rules, prompts or other people.
    """
    if len(text) > MAX_CHARACTERS:
        return None
    clean = "".join(part for character in text for part in visible(character))
    for sentence in re.findall(r"[^。!！.\n]+[?？]*", clean.replace("，", ",").replace("？", "?")):
        plain = folded(sentence).strip(" ,?!~")
        offset = len(sentence) - len(sentence.lstrip(" ,?!~"))
        if _ACCUSED.search(plain):
            continue
        for pattern in (*_FORGET_ZH, *_FORGET_EN):
            if (asked := pattern.fullmatch(plain)) and (words := _object(sentence, asked, offset)):
                return words
    return None


def _object(sentence: str, asked: re.Match[str], offset: int) -> str | None:
    start, end = asked.span("words")
    if _UNASKED.search(asked["words"]):
        return None
    skip = _DETERMINER.match(asked["words"])
    words = sentence[offset + start + (skip.end() if skip else 0) : offset + end].strip(" ,")
    return None if not words or _NOTHING.fullmatch(words) else words


def _longest_first(*lines: str) -> str:
    """A pattern for any of the alternatives in ``lines``, the longer before the shorter, as in :func:`any_of`."""
    return any_of(*sorted((word for line in lines for word in line.split()), key=len, reverse=True))


_SMALL_TALK: Final = re.compile(
    r"(?:\W|_)+|"
    + _longest_first(
        "你好 您好 大家好 嗨 哈喽 嘿 喂 早 早安 早上好 上午好 中午好 下午好 晚上好 晚安 午安 在吗 在不在 "
        "在么 有人吗 谢谢你? 谢谢您 多谢 感谢 谢啦 谢了 谢",
        "不客气 不用谢 好的 好吧 好嘞 好滴 好哒 好 行 嗯 哦 噢 喔 额 呃 啊 哈 呵 嘿 嘻 哇 唉 诶 收到 "
        "明白了? 知道了 懂了 了解了? 再见 拜拜 拜 回见 回头见",
        "没事 没关系 厉害 牛 赞 棒 真棒 太棒了 不错 太好了 对 对的 是的 没错 可以 辛苦了 加油 真的 6 88 "
        "啦 呀 哒 呢 吧 了 哟 呦 哎",
        "好久不见 好久没聊了? 打扰一下 打扰你?了 麻烦(?:你|您)了? 不好意思 "
        "(?:很|真)?高兴(?:再次)?(?:认识|见到)(?:你|您) "
        "(?:你|您)?(?:最近|近来|这几天)(?:你|您)?(?:过得|都|还)?(?:怎么样|咋样|如何|好吗|忙吗|忙不忙) "
        "(?:你|您)(?:今天)?过得(?:怎么样|好吗) (?:你|您)还?好吗",
        "(?:谢谢|感谢|多谢)(?:你|您|大家)?的?(?:帮助|帮忙|建议|推荐|分享|提醒|理解|支持|关心|回答|解答|夸奖) "
        "(?:非常|十分|太|真是太?|很)(?:谢谢|感谢)(?:你|您)? 我?(?:知道|明白|了解|记住|懂)[了啦] 原来如此 没问题 有道理 "
        "(?:你|您)?说得(?:对|有道理) 那就好 真的吗 是吗 是啊 对啊 当然 (?:明天|下次|改天)(?:见|聊|再聊) 回头再?聊 "
        "祝(?:你|您)(?:好运|愉快|开心|一切顺利) 做?个?好梦 朋友",
    )
    + "|"
    + _longest_first(
        "hi+ hello hey+ heya hiya yo sup howdy there good_(?:morning|afternoon|evening|night|day) "
        "morning bye goodbye bye-bye see_you(?:_(?:later|soon|tomorrow))? cya later ttyl",
        "thanks thank_you thx ty cheers a_lot so_much very_much ok okay k kk sure yes yeah yep yup no "
        "nope nah right alright fine cool nice great good awesome perfect wow lol lmao rofl",
        "ha(?:ha)+h? haha hehe hmm+ oh+ ah+ um+ uh+ well got_it i_see how_are_you(?:_doing)?(?:_today)? "
        "what's_up whats_up how's_it_going nice_to_meet_you you're_welcome np no_problem",
        "please bot my_friend everyone all welcome indeed exactly true",
        "(?:it's_|it_was_)?(?:so_)?(?:good|great|nice|lovely|glad|happy|pleased)_(?:to_(?:see|meet|hear_from|talk_to)|"
        "seeing|meeting|hearing_from|talking_to|chatting_with)_you(?:_(?:again|all|too))? long_time_no_(?:see|talk) "
        "welcome_back how_have_you_been how_are_things how's_(?:life|everything|your_day)(?:_going|_been)? "
        "how_is_it_going what_is_up what(?:'s|_is)_(?:new|going_on|happening)(?:_with_you)? anything_new "
        "(?:and|what_about|how_about|with)_you",
        "(?:i_)?(?:really_)?appreciate_(?:it|that) much_appreciated thanks_(?:again|a_million|for_asking) no_worries "
        "my_pleasure anytime sounds_(?:good|great|fun|awesome|amazing)(?:_to_me)? will_do makes_sense of_course "
        "sure_thing absolutely definitely totally agreed i_understand i_agree same_here me_too you_too really "
        "oh_my_(?:god|gosh)",
        "(?:that's|that_is|it's|so|how|you're)_(?:so_|really_)?(?:great|awesome|amazing|cool|nice|wonderful|fantastic|"
        "funny|sweet|lovely|right) (?:good|great|nice)_(?:one|job|work) well_done congrats congratulations good_luck "
        "have_fun have_a_(?:good|great|nice)_(?:one|day|evening|night|weekend) take_care keep_in_touch",
    )
    + r"(?![a-z0-9'])"
)
"""One word or phrase of small talk, or what is no word."""
_LONGEST_SMALL_TALK: Final = 60


def is_small_talk(text: str) -> bool:
    """Whether a message is a greeting, thanks, assent, laughter or symbols alone, so that a search would be wasted.

    A question about the person never is: every word has to be one of the listed ones.
    """
    if len(text) > _LONGEST_SMALL_TALK and any(character.isalnum() for character in text):
        return False
    # Word by word and never back: one pattern for all took time that doubled with each word that reads two ways.
    plain, end = folded(text), 0
    while found := _SMALL_TALK.match(plain, end):
        end = found.end()
    return end == len(plain)


_EVERYTHING: Final = re.compile(
    any_of(
        r"(?:你|您)?(?:现在|目前)?(?:都|还|到底|究竟)*(?:记得|知道|了解|记住|记下|记|保存|存)了?(?:哪些|"
        r"多少|什么|些什么)?(?:关于|有关)?我(?:的)?(?:什么|哪些|多少|些什么|些啥|啥|哪些(?:事情?|信息)|"
        r"什么(?:事情?|信息)|一切|所有|全部|事情|信息)",
        r"(?:你|您)?(?:都|还)?(?:记得|知道|了解|记住|记)了?(?:哪些|多少|什么)(?:关于|有关)我的?(?:事|事情|"
        r"信息|东西)?",
        r"关于我(?:的事)?(?:你|您)?(?:都|还)?(?:记得|知道|了解|记住|记)了?(?:什么|哪些|多少|些什么|啥)",
        r"(?:你|您)对我(?:有)?(?:多少|什么|哪些)?(?:了解|印象)(?:多少|有多少|哪些)?",
        r"(?:说说|讲讲|告诉我|列出|列一下)?(?:你|您)(?:所有|都)?(?:知道|记得|"
        r"了解)的?(?:关于)?我(?:的(?:一切|事|信息|所有事))? (?:说说|讲讲)(?:你|您)对我的(?:了解|印象)",
        r"(?:你|您)(?:还)?记得我吗? (?:你|您)了解我吗?",
        r"what_(?:all_)?(?:do|did)_you_(?:already_|still_|actually_)?(?:know|remember|recall|"
        r"have)(?:_stored|_saved)?_(?:about|on|of)_me",
        r"what_(?:have_you|you_have|you've)_(?:learned|learnt|remembered|stored|saved|noted|got)_(?:about|on)_me",
        r"(?:please_)?(?:tell|show)_me_(?:everything|all|what)_(?:that_)?(?:you_)?(?:know|remember|"
        r"have)(?:_stored|_saved)?_(?:about|on)_me",
        r"(?:do_you_)?(?:still_)?remember_me how_(?:much|well)_do_you_know_(?:about_)?me "
        r"everything_you_know_about_me",
    )
)
_LEAD: Final = re.compile(
    r"^(?:\W|请|那么?|嗯|对了|话说|so|ok|hey|hi|hello|and|well|now|please|can you|could you)*(?=\S)"
)


def asks_about_everything(text: str) -> bool:
    """Whether a message asks for all that is known about the person (你都记得我什么？, "what do you know of me")."""
    if len(text) > _LONGEST_SMALL_TALK * 2:
        return False
    plain = folded(text).strip()
    core = re.sub(r"(?:\W|啊|呀|呢|的|吗|of course|so far|now|exactly|please)+$", "", _LEAD.sub("", plain))
    return any(_EVERYTHING.fullmatch(each) for each in (core, plain.strip(" ?？!。."), plain))
