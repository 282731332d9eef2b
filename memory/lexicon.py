"""What a question gives away about itself: whose words it is after, whom it names, which language it is in."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from typing import Final

from memory.words import query_terms, weights

_HAN: Final = re.compile(r"[\u3400-\u9fff]")
_TOLD_BOT: Final = re.compile(
    r"我[^，。？?,]{0,8}?(?:和|跟|对|向|给|与|同|告诉|告訴|問|问)[过過了]?你"
    r"|\bI(?:'ve| have| had|'d)? (?:ever |already |just )?(?:tell|told|say|said|mention\w*|ask\w*|share\w*"
    r"|give|gave|show\w*)\b[^.?!]{0,24}?\byou\b|\bdid I (?:tell|say|mention|ask|share)",
    re.IGNORECASE,
)
_ABOUT_BOT: Final = re.compile(
    r"你[^，。？?,]{0,12}?(?:推荐|推薦|建议|建議|告诉|告訴|说过|說過|说的|說的|说了|說了|提到|提过|介绍|介紹|讲|講|教|回答|分享|安慰)"
    r"|\byou(?:'ve|'d| have| had)? (?:\w+ ){0,2}?(?:recommend|suggest|tell|told|say|said|mention|advise"
    r"|explain|answer|propose|teach|taught)|\byour (?:advice|suggestion|recommendation|answer|opinion|reply)",
    re.IGNORECASE,
)


_LEANS: Final = re.compile(
    r"[它他她牠祂]|^\W*(?:那|这|這)(?![个個位里裡儿兒么麼])"
    r"|\b(?:it|its|that|this|those|these|they|them|he|him|she|her|one|ones)\b",
    re.IGNORECASE,
)
_WONDERS: Final = re.compile(
    r"[不没沒](?:知道|晓得|曉得|记得|記得|清楚)|忘[了记記]"
    r"|\b(?:wonder\w*|forgot|no idea|(?:not|n't) (?:sure|know|remember))\b",
    re.IGNORECASE,
)
"""A sentence in which somebody wonders; with a question mark it asks all the same."""
_SENTENCE: Final = re.compile(r"[^.!?。！？；;\n]+[?？]?")
_ASKS: Final = re.compile(
    r"[?？]|(?:[吗嗎么]|(?<![着著])呢)[\s。！!~～…]*$|来着|來著|(?<![没沒])什[么麼]|啥|谁|誰|哪(?!怕)|怎[么麼样樣]|[为為]何|是否|[难難]道"
    r"|多(?:少|大|高|久|远|遠|长|長|重)|[几幾](?=[点點岁歲号號月])"
    r"|([^\W\d_])[不没沒]\1|有没有|有沒有|^\W*(?:请|請|再|快)?(?:你|您)?(?:告诉|告訴|提醒|跟|给|給|和)我|^\W*(?:说说|說說|讲讲|講講|列出)"
    r"|(?:^|[.!;:\n])\s*(?:(?:so|and|but|ok(?:ay)?|hey|please|well|then)[\s,]+)*"
    r"(?:what(?! an? )|whats|where|who|whom|whose|when|why|how|which|do|does|did|is|are|am|was|were|can|could|will"
    r"|would|should|shall|have (?:i|you|we)|has|had i|isn't|aren't|don't (?:i|you)|didn't"
    r"|(?:tell|remind|show|give) me|list|(?:can|could) you)\b",
    re.IGNORECASE,
)
_REQUEST: Final = re.compile(
    r"(?:帮|幫|(?<![荐薦绍紹送寄发發])[给給]|让|讓|告诉|告訴|教|请|請)我"
    r"|[跟和]我们?(?=(?:一起)?[说說讲講聊谈談玩唱念读讀](?![过過]))|我们?来"
    r"|\b(?:tell|for|give|show|help|let|teach|with|excuse) me\b|\blet us\b",
    re.IGNORECASE,
)
_FIRST_PERSON: Final = re.compile(
    r"我|咱|俺|自己|\b(?:i|me|my|mine|myself|we|us|our|ours|i'm|i've|i'd|i'll)\b", re.IGNORECASE
)
_TO_BOT: Final = re.compile(r"[你您妳]|\b(?:you|your|yours|yourself|you're|u(?!\.))\b", re.IGNORECASE)
_PROPOSES: Final = re.compile(r"吧[\s。！!~～…]*$")
"""A proposal, whatever question words it holds (随便聊点什么吧)."""
_ANYBODYS: Final = re.compile(
    r"^\W*(?:(?:今|明|后|後)天|今晚|今早|明早|现在|現在|外面|外边|外邊|这?周末|這?週末|这里|這裡|这儿|那|的|还|還|会|會|要)*"
    r"(?:天气|天氣|气温|氣溫|温度|溫度|下不下雨|下雨|下雪|刮风|颳風|冷|热|熱)(?!了吗|了嗎|了没|了沒)"
    r"(?:预报|預報|会|會|怎么样|怎麼樣|怎样|怎樣|咋样|如何|好|冷|热|熱|不|多少度|几度|幾度|吗|嗎|呢|啊|呀)*\W*$"
    r"|^\W*(?:现在|現在)(?:是|都)?(?:什么时间|什麼時間|[几幾][点點])|^\W*(?:都)?[几幾][点點][钟鐘]?了"
    r"|^\W*[今明]天(?:是)?(?:星期|周|週|礼拜|禮拜)[几幾]|^\W*今天(?:是)?(?:[几幾]月)?[几幾][号號]"
    r"|\b(?:is|isn't|will|won't|does|do) (?:it|the weather)(?: \w+){0,2}"
    r" (?:rain\w*|snow\w*|cold|hot|warm|cool|sunny|windy|wet|freezing|foggy|humid)"
    r"(?: (?:outside|out|there|here|again|later|today|tonight|tomorrow|now|right|this \w+|on \w+day))*\W*$"
    r"|\b(?:what's|what is|what will|how's|how is|how will) (?:the )?(?:weather|forecast|temperature)\b"
    r"|\bwhat (?:time|day|date) is (?:it|today)\b(?! that)|\b(?:what's|what is) (?:the (?:time|date)\b|today's date)",
    re.IGNORECASE,
)
"""The weather and the clock of here and now: no memory holds them. What they were on a day gone by may be told."""
_LEADS: Final = re.compile(
    r"[你您](?:还|還)?(?:知道|记得|記得)(?!我)|(?:告诉|告訴|提醒)(?:一下)?我"
    r"|\b(?:(?:can|could|will|would) you )?(?:please )?(?:do you (?:know|remember|recall)|(?:tell|remind|show) me)"
    r"(?= (?:again )?(?:what|where|who|whose|when|why|how|which|if|whether)\b)",
    re.IGNORECASE,
)
"""What leads into a question and is none itself."""
_POINTS_BACK: Final = re.compile(
    r"[它他她牠祂]|那(?!里|裡|儿|兒|么|麼)|这(?!里|儿|么)|這(?!裡|兒|麼)|刚才|剛才|呢[？?]?$"
    r"|\b(?:it|its|that|this|those|these|they|them|he|him|she|her|one|ones)\b|^(?:and|so|what about|how about)\b",
    re.IGNORECASE,
)
_LINE_ASKS: Final = re.compile(
    r"[?？]\W*$|[吗嗎]\W*$"
    r"|^(?!.*(?:没什么|没有什么|什么都|什么也|怎么都|谁都|哪儿都|哪里都|不知道|忘了))(?=[^，。；：！,.;:!]{2,20}$).*"
    r"(?:什么|什麼|谁|誰|哪[儿兒里裡个個天年家位些]|几[点號号岁]|多少|多久|怎么[样办]?|怎麼|为何|為何|是不是|有没有|能不能|会不会)"
    r"|^(?:who|what|where|when|why|how|which)(?:'s| (?:is|are|was|were|do|does|did|can|could|should|would|will|have|has"
    r"|much|many|long|often|old|big|far))\b"
    r"|^(?:do|does|did|can|could|would|will|is|are) (?:i|you|we|he|she|they|it|my|your|the|there)\b",
    re.IGNORECASE,
)
_ASKS_NAME: Final = re.compile(r"\b(?:who|whom|whose|where|which|what)\b", re.IGNORECASE)
_ASKS_NUMBER: Final = re.compile(r"\bhow (?:many|much|old|long|often|far|big|tall)\b", re.IGNORECASE)
_NAME: Final = re.compile(r"(?<=[\w,;:'\u2019] )[A-Z][a-z]+|[\"\u201c][^\"\u201d]{2,60}[\"\u201d]")
"""A capital within a sentence, or a title in quotes."""
_FEW_TERMS: Final = {"zh": 2, "en": 0}
"""A question with no more terms than this says too little alone ("呢？", "and then?")."""


def is_question(text: str) -> bool:
    """Whether a message asks for something, with or without a question mark (我住哪儿来着, "tell me where I live")."""
    return _ASKS.search(text) is not None


def asked_in(text: str) -> str:
    """The language a question is treated as: "zh" when it holds a Han character, else "en"."""
    return "zh" if _HAN.search(text) else "en"


def after_the_bot(question: str) -> bool:
    """Whether a question is after something the bot said, rather than the person."""
    return bool(_ABOUT_BOT.search(question)) and not _TOLD_BOT.search(question)


def asks_name(question: str) -> bool:
    """Whether an English question can be answered by a name: who, where, which, what, but not how many.

    Chinese writes names like any other word, so that no line could be told to hold one.
    """
    return (
        asked_in(question) == "en" and _ASKS_NAME.search(question) is not None and _ASKS_NUMBER.search(question) is None
    )


def holds_name(text: str, known: Container[str]) -> bool:
    """Whether an English text names somebody or something but those it is between, who are ``known``."""
    return any(name not in known for name in _NAME.findall(text))


def named(question: str, speakers: Iterable[str]) -> str | None:
    """The one speaker a question names; None when it names nobody or several."""
    found = mentioned(question, speakers)
    return found[0] if len(found) == 1 else None


def mentioned(question: str, people: Iterable[str]) -> list[str]:
    """Everybody a question names."""
    return [name for name in people if name and _mentions(question, name)]


def _mentions(question: str, name: str) -> bool:
    if _HAN.search(name):
        return name in question
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", question, re.IGNORECASE) is not None


def personal(question: str) -> bool:
    """Whether a question is about the person: first person, but not only as the one a favour is asked for."""
    return _FIRST_PERSON.search(_REQUEST.sub(" ", question)) is not None


def asks_memory(message: str, *, personal: bool) -> bool:
    """Whether a message asks for something a memory may hold: about a person, or at least not about the bot.

    "Who made you?", "tell me a joke", 你会唱歌吗, today's weather and all that asks nothing are talk. ``personal`` is
    what :func:`personal` says of it, with the turns before where it needs them.
    """
    if not is_question(message) or _PROPOSES.search(message):
        return False
    if not personal and _ANYBODYS.search(message):
        return False
    core = _LEADS.sub(" ", message)
    return personal or after_the_bot(message) or not (_TO_BOT.search(core) or _REQUEST.search(core))


def asks(text: str) -> bool:
    """Whether a line asks rather than tells: by its mark, or short and by its question word.

    Stricter than :func:`is_question`, for a telling line taken for a question is lost to recall.
    """
    return _LINE_ASKS.search(text.strip()) is not None


def only_asks(text: str) -> bool:
    """Whether a line tells nothing: every sentence of it asks."""
    return all(asks(sentence) for sentence in _SENTENCE.findall(text.strip()) or [text])


def needs_context(question: str, terms: int) -> bool:
    """Whether a question cannot be understood without the turns before it: too short, or it points back."""
    return terms <= _FEW_TERMS[asked_in(question)] or _POINTS_BACK.search(question) is not None


def asking_part(question: str) -> str:
    """The sentences of a question that ask, all of it when these cannot be understood without the rest.

    People chat before they come to the point: 今天累死了。我的手机号是多少？ does not ask about today. Nor does a
    sentence in which they only wonder, where another one bears a question mark and says enough by itself:
    不知道今天会不会下雨。我的牙医叫什么？
    """
    asking = [sentence for sentence in _SENTENCE.findall(question) if asks(sentence) or is_question(sentence)]
    meant = [sentence for sentence in asking if _is_marked(sentence) or _WONDERS.search(sentence) is None]
    if _stands_alone(meant) and any(map(_is_marked, meant)) and _says_enough(meant):
        return "\n".join(meant)
    return "\n".join(asking) if _stands_alone(asking) else question


def _is_marked(sentence: str) -> bool:
    return sentence.endswith(("?", "？"))


def _stands_alone(sentences: Sequence[str]) -> bool:
    part = "\n".join(sentences)
    return 1.0 in weights(query_terms(part)) and _LEANS.search(part) is None


def _says_enough(sentences: Sequence[str]) -> bool:
    """Whether it is more than "which hotel?", which goes with what was said before."""
    part = "\n".join(sentences)
    terms = query_terms(part)
    words = [term for term, counts in zip(terms, weights(terms), strict=True) if counts == 1.0]
    # Pairs of Han characters overlap.
    han = {sign for word in words for sign in word if _HAN.match(sign)}
    return personal(part) or len(han) // 2 + sum(_HAN.match(word) is None for word in words) > 1
