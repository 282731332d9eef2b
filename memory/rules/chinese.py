"""Chinese, as tables. Patterns are written in simplified characters; traditional text is folded before it is read."""

from __future__ import annotations

import re
from typing import Final

from memory.model import SELF
from memory.rules import values_chinese as values
from memory.rules.grammar import Rule, Subject, Tongue, any_of

_KIN: Final = "(?:大|小|二|亲)?" + any_of(
    "女儿 闺女 儿子 孩子 宝宝 老婆 妻子 太太 爱人 媳妇 老公 丈夫 先生 未婚妻 未婚夫 对象 男朋友 女朋友 男友 女友",
    "爸爸 老爸 父亲 爸 妈妈 老妈 母亲 妈 哥哥 哥 姐姐 姐 弟弟 妹妹 爷爷 奶奶 外公 外婆 姥姥 姥爷 岳父 岳母",
    "弟(?!子) 妹(?!子)",
)
_OF_ONES_OWN: Final = any_of("爸妈 老爸 老妈 老婆 老公 爸爸 妈妈 奶奶 爷爷 外婆 外公 姥姥 姥爷")
"""Nobody says these of another's without saying whose."""
_OTHERS: Final = re.compile(rf"(?:(?:我们家|我们|我家|我)的?|(?={_OF_ONES_OWN}))(?P<kin>{_KIN})")
_OWN: Final = re.compile(
    r"我们一?家(?=现在|目前|住|搬)|我(?![们等国校司方市省])(?:自己|本人|这个人|这人|个人)?|本人|俺"
)

_NOT: Final = "(?:一点(?:儿)?[都也]?|从来都?|从|并|真的|实在)?不(?:太|怎么|咋|大|是很|是太|很)?"
_VERY: Final = any_of("最 很 非常 特别? 超级? 巨 挺 蛮 十分 真的? 真心")
_MUCH: Final = f"(?:{_VERY}|{any_of('更 比较 还是 也 都 尤其 格外 相当 就')})*"
_LIKE: Final = any_of("喜欢上了 喜欢 喜爱 热爱 酷爱 钟爱 偏爱 爱上了 爱 迷上了? 迷恋 沉迷于? 痴迷于?")
_YEARS: Final = "(?:(?:已经|快)?有?(?:[0-9一二三四五六七八九十两几]+多?年多?|半年多?|大半年))?"
_NOT_THAT: Final = r"(?:而?不是[^\0,:]{1,8})?"
_RECENTLY: Final = any_of("已经 刚刚? 才 上个?月 这个?月 前两?天 前阵子 上周 去年 今年 前年 昨天 最近 [0-9]{4}年") + "*"
_DIETS: Final = any_of("全素 纯素 素食 蛋奶素 锅边素 鱼素 生酮 低碳 低糖 低盐 清真 无麸质")
_FOODS: Final = any_of(
    "香菜 葱 姜 蒜 葱姜蒜 葱蒜 洋葱 芹菜 苦瓜 茄子 胡萝卜 蘑菇 榴莲 海鲜 鱼 虾 螃蟹 牛肉 羊肉 猪肉 鸡肉 内脏 肥肉 肉",
    "鸡蛋 豆腐 牛奶 奶制品 奶茶 咖啡 酒 白酒 啤酒 碳酸饮料 甜的?食? 辣的? 生冷 生的 麸质 面食 糖 坚果 花生 折耳根",
)
_CONDITIONS: Final = "(?:[12一二]型)?" + any_of(
    "糖尿病 高血压 低血压 高血脂 哮喘 癫痫 心脏病 冠心病 痛风 贫血 甲亢 甲减 抑郁症 焦虑症 偏头痛 鼻炎 胃炎 关节炎",
    "肾病 红斑狼疮 夜盲症 色盲 色弱 幽闭恐惧症 恐高症 乳糜泻 蚕豆病",
)
_DATE: Final = (
    "(?P<birthday>(?:农历|阴历|阳历|公历)?(?:[0-9〇零一二三四五六七八九]{2,4}年)?"
    "(?:[0-9]{1,2}|正|腊|冬|[一二三四五六七八九十]{1,2})月(?:初?[一二三四五六七八九十廿]{1,3}|[0-9]{1,2})[日号]?)"
)


def _any(name: str, longest: int = 24) -> str:
    """Return a group for a value of any words, as few as the rest of the pattern allows."""
    return rf"(?P<{name}>[^\0,:]{{1,{longest}}}?)"


def _rule(
    pattern: str, *, opens: bool = False, negates: bool = False, unless: str | None = None, needs: str | None = None
) -> Rule:
    """Return a rule; a clause that goes on may always leave out 我, a message begin without it where it ``opens``."""
    compiled = re.compile(pattern)
    return Rule(
        compiled,
        compiled,
        compiled,
        negates,
        re.compile(unless) if unless else None,
        re.compile(needs, re.MULTILINE) if needs else None,
        opens,
    )


_WHO: Final = (
    _rule(f"的?(?:中文|英文|真|全)?(?:名字?|姓名)就?(?:是|叫做?) ?{_any('name', 12)}"),
    _rule(f"就?(?:叫做|名叫|叫) ?{_any('name', 12)}"),
    _rule(
        f"是{_any('name', 12)}",
        needs=r"^\W{0,4}(?:大家好|你们?好|您好|嗨|哈喽|hi|hello)|初次见面|我是新来的|我是[^\0,]{2,4},(?:家?住|今年|\d\d岁)",
    ),
    _rule(f"的?(?:阳历|农历|阴历)?生日就?[是在]?(?:每年)?的?{_DATE}(?:那天)?{_NOT_THAT}"),
    _rule(f"是?[在于]?{_DATE}(?:出生|生|过生日|生日)的?"),
    _rule(f"(?:出生|生)[于在]{_DATE}"),
    _rule(f"[到就]?{_DATE}就?满[0-9一二三四五六七八九十]+周?岁"),
    _rule(f"[会能][说讲]{_any('language')}"),
    _rule(f"的?母语[是为]{_any('language', 8)}"),
    _rule(f"的?时区[是为在]{_any('timezone', 20)}"),
    _rule("(?:现在)?(?:住?在|处于)(?P<timezone>[东西](?:[0-9一二三四五六七八九十]{1,2})区)"),
)

_WHERE: Final = (
    _rule(f"(?:现在|已经|早就)*不再?(?:住在?|居住在){_any('home')}[了啦]", negates=True, opens=True),
    _rule(f"(?:已经)?不再?(?:住在?|居住在){_any('home')}", negates=True),
    _rule(f"(?:已经)?不再?在{_any('home')}(?:住|居住|生活)[了啦]?", negates=True),
    _rule(f"(?:已经|刚)?从{_any('home')}搬(?:走|出来|出去)了?", negates=True),
    _rule(f"(?:已经|刚)?搬离了?{_any('home')}了?", negates=True),
    _rule(
        f"的?家?[就是]?(?:住在|定居在|定居于?|居住在|家住|家在|住){_any('home')}(?:这边|那边|这里)?{_YEARS}了?{_NOT_THAT}"
    ),
    _rule(f"在{_any('home')}(?:定居|住|生活|居住)(?:了{_YEARS}了)?"),
    _rule(f"(?:现在|目前|如今|暂时)(?:住在?|定居在?){_any('home')}(?:这边|那边|这里)?{_YEARS}了?", opens=True),
    _rule(
        rf"{_RECENTLY}(?:从[^\0,:]{{1,12}})?(?:搬家?|移居)[到去来回至]了?{_any('home')}(?:这边|来住?|去住?|"
        rf"定居|住|生活)?(?:{_YEARS}了?|没多久|不久)?",
        opens=True,
        unless="搬走|后来|又搬|明年|下个?月|下周|办公|公司|座位|工位",
    ),
    _rule(f"的?(?:老家|家乡|故乡)[是在](?![装下刮停拆涨办盖修过封]){_any('origin')}的?", opens=True),
    _rule(f"(?:现在|目前)?base[在是]? ?{_any('home')}的?", opens=True),
    _rule(f"(?:是从?|系|来自){_any('origin')}(?:来的|人)"),
    _rule(f"来自{_any('origin')}"),
)

_BODY: Final = (
    _rule(f"对{_any('allergy')}(?:已经)?不再?过敏了?", negates=True),
    _rule(f"不再?对{_any('allergy')}过敏了?", negates=True),
    _rule(f"一(?:吃|喝|碰|闻到?){_any('allergy')}就会?过敏", opens=True),
    _rule(f"对{_any('allergy')}有?(?:都|很|严重|非常|特别|轻度|轻微|有点|有些|会|也)*过敏(?:反应)?的?", opens=True),
    _rule(
        f"(?:有|查出来?(?:对|是)?|确诊了?)?(?P<allergy>{values.ALLERGENS}(?:[、和跟及]{values.ALLERGENS})*)(?:都|会|严重)*过敏症?",
        opens=True,
    ),
    _rule("(?:已经)?不再?(?:吃|是)?(?P<diet>素食者|素食主义者|素|清真)了?", negates=True),
    _rule("(?:以后)?不再(?:吃|是)(?P<diet>素食者|素食主义者|素|清真)了", negates=True, opens=True),
    _rule(f"(?:只|长期|常年)?(?P<diet>吃(?:{_DIETS}|素))(?:的|好?[几多两]年了|{_YEARS}了)?"),
    _rule(f"是?一?[个名]?(?P<diet>{_DIETS}(?:主义者|者|饮食者|饮食))"),
    _rule("有?(?P<diet>乳糖不耐受?|麸质不耐受?)症?", opens=True),
    _rule(f"(?:早就|已经|现在|早)*(?P<diet>不[吃喝]{_FOODS})了", opens=True),
    _rule(f"(?P<diet>(?:从来?|一律|一点都)?(?:不|不能)[吃喝]{_FOODS}(?:[和、跟]{_FOODS})*)的?", opens=True),
    _rule(r"(?P<diet>(?:从来?|一律|一点都)?(?:不|不能|不可以|没法)[吃喝碰沾][^\0,:]{1,12}?)的?"),
    _rule(r"(?P<diet>忌口?[^\0,:]{1,10}?)的?"),
    _rule(f"(?:有|患有|得了|患)?(?:轻度|严重的?|先天性)?(?P<health>{_CONDITIONS})"),
)

_TASTE: Final = (
    _rule(
        rf"最(?:喜欢|爱|喜爱|钟爱)[吃喝看听玩]?的(?P<thing>[^\0,:的]{{1,8}}?)(?:是|就是|"
        rf"一直是){_any('favourite')}"
    ),
    _rule(f"(?:已经)?不再?(?:太|怎么)?(?:那么|这么)?(?:喜欢|爱){_any('like')}了", negates=True),
    _rule(f"(?:再也不|不再)(?:喜欢|爱){_any('like')}了?", negates=True),
    _rule(f"{_NOT}(?:喜欢|喜爱|爱){_any('dislike')}的?"),
    _rule(f"最(?:讨厌|受不了|烦|怕){_any('dislike')}了", opens=True),
    _rule(f"{_MUCH}(?:讨厌|厌恶|反感|受不了|不喜欢|吃不惯|喝不惯|看不惯|痛恨){_any('dislike')}的?", opens=True),
    _rule(f"(?:不太|不怎么|不咋|不是很)喜欢{_any('dislike')}的?", opens=True),
    _rule(f"对{_any('dislike')}(?:很|非常|特别|比较)?(?:反感|没兴趣|没有兴趣|不感兴趣|无感)"),
    _rule(f"{_MUCH}{_LIKE}{_any('like')}的?"),
    _rule(f"(?:{_VERY}+(?:喜欢|爱)|(?:最近)?迷上了?){_any('like')}的?", opens=True),
    _rule(f"对{_any('like')}{_MUCH}(?:感兴趣|有兴趣)的?"),
    _rule(f"的?(?:兴趣)?爱好就?[是有]{_any('like')}"),
)

_WORK: Final = (
    _rule(f"(?:已经)?不再?[是做当](?:一?[名个位])?{_any('job', 16)}了?", negates=True),
    _rule(f"的?(?:职业|工作|本职工作?)就?是(?:一?[名个位])?{_any('job', 16)}"),
    _rule(f"是做{_any('job', 16)}的"),
    _rule("是(?P<job__drives>开[^\\0,:]{1,4}车)的"),
    _rule(f"(?:是|在?做|在?当|担任)(?:一?[名个位])?{_any('job', 16)}"),
    _rule(f"是?{_any('job', 16)}一[名枚只个]", opens=True),
    _rule(
        f"是?(?:做|搞|干)(?P<job__field>(?:跨境|互联网|线上|独立|海外|医疗|工业|室内|软件|硬件)?{values.FIELDS})(?:工作|这一?行)?的"
    ),
    _rule(f"{_RECENTLY}(?:转行|改行)(?:做|当|干)?了?{_any('job', 16)}", opens=True),
    _rule(
        rf"{_RECENTLY}(?:入职|加入)了?[^\0,:才就后知要]{{1,12}}?(?:做|当|担任|任)(?:一?[名个位])?{_any('job', 16)}",
        opens=True,
    ),
    _rule("(?P<fact>(?:在|正在|现在)*[读上念](?:研[一二三]|博[一二三四]|大[一二三四]|高[一二三]|初[一二三]))了?"),
    _rule(rf"在[^\0,:]{{1,14}}?(?:做|当|担任|任)(?:一?[名个位])?{_any('job', 16)}", opens=True),
    _rule(
        r"(?P<fact>(?:(?:这周|这个?星期|这几天|这两天|最近|现在|目前|都|还|正|一直)*在[^\0,:不]{0,8}?(?:出差|旅游|旅行|度假|住院|隔离)))"
        r"(?:中|呢)?"
    ),
    _rule("(?P<fact>在[^\0,:]{1,10}?教(?:书|语文|数学|英语|物理|化学|生物|历史|地理|政治|体育|音乐|美术))"),
    _rule(r"(?P<fact__workplace>在[^\0,:]{1,12}?(?:上班|工作|读书|念书|上大学|读研|读博|当兵))"),
    _rule(
        r"(?:已经|现在|早就|早)*(?:不再?|没有?再?)(?P<fact__left>在[^\0,:]{1,12}?(?:上班|工作|读书|念书|上学|当兵))了",
        negates=True,
        opens=True,
    ),
    _rule("(?:以后)?不再(?P<fact__left>[学练教养玩打跑弹画写抽开骑][^\0,:]{1,8}?)了", negates=True, opens=True),
    _rule("(?:已经|现在|早就|早)+不(?P<fact__left>[学练教养弹画抽][^\0,:]{1,8}?)了", negates=True),
    _rule(f"从事{_any('job', 16)}(?:工作|行业|相关工作|方面的工作)"),
    _rule("(?:已经|刚)*(?P<job>退休)了?"),
    _rule(
        "(?:是|一直|长期|常年|都|固定)*(?P<fact>[上值倒][大小]?(?:夜班|早班|晚班|中班|白班|通宵班)|[两三四]班倒|倒班|轮班"
        "|做[五六][休歇][一二]|单休|双休|大小周|在家办公|居家办公|远程办公|朝九晚[五六]|自由职业)的?"
    ),
    _rule(
        f"(?:家的?|的|有|养了?)*(?:一?[只条个匹])?[小大老]?(?P<species>{values.SPECIES})"
        f"(?:的名字[是叫]|名叫|叫做|叫){_any('pet', 10)}"
    ),
)

_ADDRESS: Final = (
    any_of("以后 之后 今后 你 您 请 可以 能 就 直接 大家都? 朋友们?都? 同事们?都? 家人都? 一般 麻烦 都") + "*"
)
_SENTENCES: Final = (
    _rule(f"{_ADDRESS}(?:别|不要|不用)再?(?:叫|喊|称呼)我{_any('address', 10)}了?", negates=True),
    _rule(f"{_ADDRESS}(?:叫|喊|称呼|管)我[为叫]? ?{_any('address', 10)}(?:就行|就好|就可以|即可|好了|就成|吧)?了?"),
    _rule(f"{_DATE}就?是我的?生日"),
    _rule(f"(?:我们|我家|我们家)在?(?:家里?)?(?:平时|都|一般)*[说讲]{_any('language')}"),
    _rule(rf"{_any('favourite')}(?:一直|就)?是我最(?:喜欢|爱)的(?P<thing>[^\0,:的]{{1,8}}?)"),
    _rule(
        "(?:以后|请|你|您|的|给我|麻烦)*(?:回答|回复|说话)我?(?:的时候)?(?:请|要|得|尽量|都|可以|能|最好)*"
        f"(?P<style>{values.STYLES})(?:一?[点些])?(?:就行|就好|吧)?"
    ),
    _rule(
        "(?:回答|回复)?(?:请|以后|时|都|里)*(?P<style>(?:不要|别|不用|少)用(?:表情符号|表情|emoji|敬语|术语))[了吧]?"
    ),
)


def _subject(words: str, _written: str) -> Subject | None:
    if kin := _OTHERS.match(words):
        return Subject(kin["kin"], kin.end())
    if own := _OWN.match(words):
        return Subject(SELF, own.end())
    return None


_FILLER: Final = any_of(
    r"[\s\W_] 对了 其实 嗯+ 另外 还有 顺便(?:说一下|一提|说)? 话说 你好[呀啊]? 您好 大家好 嗨 哈喽 噢 "
    r"[额呃唉诶哎]+ 不对 不是(?=,) 打错了? 说错了? 讲错了? 写错了? 等等 救命 天[哪呐啊] 笑死 讲真 说真的 不得不说",
    r"哦 啊 呃 哈哈+ 嘿嘿 hi hello ok ps",
    "说实话 老实说 不瞒你说 而且 然后 不过 可是 但是 但(?!愿) 所以 因为 由于 毕竟 我跟你说 我告诉你 "
    "告诉你 跟你说 补充一下 补充",
    "我(?:是说|的意思是)(?=我)",
    r"(?:比起|相比|跟)[^\0,:我]{1,8}(?:相比|比起来|比)?(?=我更)",
    "更正一下? 纠正一下 说起来 提醒一下 首先 其次 最后 是的 没错 好的 声明一下 (?:自我)?介绍一下",
    "(?:请|帮我|你要|你)?(?:记住|记得|记一下)",
)
_HARMLESS: Final = any_of(
    "我是说 我?跟你说 我?告诉你 顺便说(?:一下)? 说错了? 说实话 老实说 不瞒你说 话说 说起来 补充说? [会能]说 "
    "我们?在?家里?说 小说 说唱 说明(?![天年早晚日儿]) 说服 听说读写 传说 脱口秀",
)
_REPORTED: Final = any_of(
    "说 告诉我 表示 (?:以为|觉得|认为|问|猜|夸|笑|骂|嫌|怪|当)我 写道 据说 有人 例如 比如 举例 假装 装作",
)
_FRAME: Final = any_of(
    r"(?:帮|给|替|请|麻烦).{0,8}?(?:写|编|改|润色|翻译|造句|起草|总结|概括|解释|校对|检查|续)",
    r"(?:^|[\n。,!?:;])[^\w\n]{0,4}(?:写|编|翻译|译|改写|改一下|修改|润色|续写|扩写|造句|解释|校对|重复|复述|跟我念|模仿)",
    r"翻译[成:为一] 译成 怎么翻译 (?:英[语文]|中文|日[语文])怎么说 什么意思 语法 病句 例句",
    r"你来?就?(?:当|演)(?![时年然初地前]) 扮演 假扮 角色扮演 cosplay",
    r"人设 台词 主角 主人公 (?:小说|故事|剧本|书|电影|剧|游戏|梦|漫画|"
    r"歌词?)[里中](?!心|国) 梦见 梦到 打钱",
)
_QUESTION: Final = any_of(
    r"吗 什么 谁 哪 怎么 怎样 为什么 为啥 多少 (?<![这那前好过])几[点个岁号月次天] 是不是 有没有 要不要 能不能 会不会 "
    r"可不可以 对不对 好不好 该不该",
    r"喜不喜欢 爱不爱 吃不吃 难道 何时 何处 是否",
)
_NO_DEADLINE: Final = "(?<![一二三四五六日天号月点年午晚班学底初末旬])"
"""周五之前 is no 之前."""
_PAST: Final = any_of(
    f"{_NO_DEADLINE}以前 {_NO_DEADLINE}之前 曾经 曾 过去 小时候 当年 年轻的?时 年轻那 大学那会 大学的?时候? 那时",
    "从前 原来 原先 早年 那会儿 当时 前几年 上学时",
)

CHINESE: Final = Tongue(
    code="zh",
    frame=re.compile(_FRAME),
    breaks=re.compile(
        r",(?!\d{3})|(?<!\d):|:(?!\d)|[()（）【】]|——|(?<=[^\W不])(?:但是|但(?!愿)|不过(?![敏分如来去])|可是|而且|所以|"
        r"因为|然后|只是|并且)|(?<=[一-鿿]{2})(?<![叫欢爱是在厌住]) +(?=[一-鿿]{2})"
        r"|(?<=\d[号日点岁]) +(?=[一-鿿]{2})"
    ),
    filler=re.compile(_FILLER + "*"),
    tail=re.compile(r"(?:[^\w》]|[啊呀哦喔哈嘛啦哟呦噢呗哒耶咧唷捏滴])*$"),
    harmless=re.compile(_HARMLESS),
    unreal=re.compile(
        any_of(
            "如果 要是 假如 假设 倘若 若是 万一 的话(?![剧题费]) 就好了 要不是 除非 即使 哪怕 想象 设想 巴不得 恨不得"
        )
    ),
    joke=re.compile(any_of(r"开玩笑 骗你 逗你 说笑 [😂🤣😜😝🤪] 狗头 哈哈+\W*$ hh+\W*$ 2333 才怪")),
    wish=re.compile(any_of("希望 但愿 可能 也许 或许 大概 好像 似乎 应该 差点 几乎 听说 本来 想要 考虑")),
    intent=re.compile(any_of("打算 准备 计划")),
    reported=re.compile(_REPORTED),
    question=re.compile(_QUESTION),
    past=re.compile(_PAST),
    present=re.compile(any_of("现在 如今 目前 后来 已经")),
    adverbs=re.compile(
        any_of(
            r"\s 以前 曾经 从前 原来 原先 早年 小时候 现在 目前 如今 平时 通常 一般 一直 从小 也 就 都 还 "
            r"真的 确实 经常 常常 向来 天生 其实 当然 完全 严格"
        )
        + "*"
    ),
    others=re.compile(rf"[他她它]|朋友|同事|同学|室友|邻居|老板|领导|人家|我们?家?的?{_KIN}"),
    introduces=re.compile(any_of(r"今年\d+岁? \d+岁 是 在(?!等) 住 叫 姓 来自 从事 属 [一-鿿]{2,4}人$")),
    subject=_subject,
    predicates=_WHO + _WHERE + _BODY + _TASTE + _WORK,
    sentences=_SENTENCES,
    splits=values.split,
    fits=values.fits,
)
