"""Matters that some people want kept only if they agreed: health, money, faith, sexuality, children.

Told by words, for everybody alike and without a model, and rather once too often: a question too many is a smaller harm
than a diagnosis that was kept unasked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal, get_args

from memory.model import Candidate, ProfileLine
from memory.model import Entry as Memory
from memory.script import folded

Matter = Literal["health", "money", "faith", "sexuality", "children"]
MATTERS: Final[tuple[Matter, ...]] = get_args(Matter)

_ENGLISH: Final[Mapping[Matter, str]] = {
    "health": r"""allerg\w* asthma\w* diabet\w* cancer\w* tumou?r\w* chemo\w* radiotherapy hiv aids depress\w* anxi\w*
        bipolar autis\w* adhd therap\w* psychiatr\w* psycholog\w* counsell?or\w* medic\w* meds pills? prescri\w* doses?
        dosage insulin antibiotic\w* painkiller\w* surger\w* surgeon\w* operated operation hospital\w* clinic\w* doctors?
        dentist\w* nurse gp diagnos\w* symptom\w* diseases? illness\w* ill sick\w* unwell fever\w* flu covid\w*
        pregnan\w* miscarr\w* abortion\w* ivf menopaus\w* pains? painful\w* aches? \w+aches? migraine\w* injur\w* fractur\w*
        broke.my.\w+ broken.(?:leg|arm|ankle|wrist|rib|toe|finger|nose|bone)s? sprain\w* disab\w* wheelchair\w*
        blood.\w+ cholesterol heart.(?:attack|condition|disease|failure|rate) pacemaker stroke epilep\w* seizure\w*
        vaccin\w* diets? dieting vegetarian\w* vegans? gluten\w* lactose intoleran\w* c(?:o?)eliac weigh\w* bmi calor\w*
        insomnia\w* apn(?:o?)ea addict\w* alcoholi\w* sober rehab\w* smok\w* suicid\w* self.?harm\w* anore\w* bulimi\w*
        eating.disorder dementia alzheimer\w* parkinson\w* hepatitis tubercul\w* infect\w* virus\w* deaf\w* blind\w*
        mri x-?rays? biops\w* dialysis kidneys? liver thyroid arthritis eczema psoriasis hernia ulcer\w* gout
        panic.attacks? burn(?:ed|t)?.?out trauma\w* ptsd transplant\w* concussion hearing.aids? cannot.(?:walk|see|hear)
        (?:don't|do.not|can't|cannot|never).(?:eat|drink|digest|sleep) health\w* steps.a.day""",
    "money": r"""salar\w* wages? incomes? earn\w* paid pay paycheck\w* payslip\w* payday payrise raise debts? loans? lend
        mortgag\w* credit\w* bank\w* savings? saved invest\w* stocks? shares crypto\w* bitcoin\w* tax\w* rents? budget\w*
        money broke afford\w* owe[sd]? owing inherit\w* pension\w* insur\w* dollars? euros? bucks pounds? yuan rmb usd gbp
        eur bonus\w* gambl\w* lottery bets? welfare benefits financ\w* net.worth overdraft bailiff\w* \d+k rich poor
        alimony allowance installments? instalments? hedge.fund dividend\w* wealth\w* [$€£¥]\s?\d[\d,.]*\w*""",
    "faith": r"""god allah jesus christ\w* church\w* mosque\w* synagogue\w* temple\w* pray\w* relig\w* faith\w* muslims?
        islam\w* jews? jewish judaism hindu\w* buddh\w* catholic\w* protestant\w* orthodox atheis\w* agnostic\w* bible\w*
        quran koran torah ramadan sabbath kosher halal bapti[sz]\w* mass imam\w* priest\w* pastor\w* rabbi\w* monks? nuns?
        sikh\w* mormon\w* convert\w* worship\w* spiritual\w* hajj eid gospel\w* congregation parish \w*theis\w* lutheran\w*
        evangelical\w* quaker\w* jehovah\w* confession communion passover yom.kippur taoi\w* shinto believers? scriptures?""",
    "sexuality": r"""gay lesbian\w* bisexual\w* queer\w* homosexual\w* heterosexual\w* asexual\w* pansexual\w* trans
        transgender\w* transsexual\w* transition\w* non-?binary lgbt\w* sex sexual\w* orgasm\w* masturbat\w* porn\w*
        condoms? contracept\w* birth.control libido erecti\w* virgin\w* fetish\w* kink\w* c[ao]me.out coming.out
        hook(?:ed)?.up one.night.stand affair stds? stis? chlamydia nudes? naked genders? closeted sleep(?:ing)?.with
        slept.with i'?m.(?:straight|bi) am.(?:straight|bi) polyamor\w* viagra intimacy same.sex drag.queen""",
    "children": r"""child\w* kids? sons? daughters? bab(?:y|ies) toddlers? newborns? infants? little.(?:boy|girl|one)s?
        kindergarten\w* nursery daycare preschool\w* grandsons? granddaughters? grandchild\w* grandkids? nephews? nieces?
        teen\w* step(?:son|daughter)s? adopt\w* custody p(?:a?)ediatric\w* \d+.(?:year|month)s?.old playground\w* my.(?:boy|girl)s? twins? parent\w* schoolgirl schoolboy minors?
        (?:first|second|third|fourth|fifth).grade\w* breastfe\w* diapers? nappies babysit\w* nanny""",
}
_CHINESE: Final[Mapping[Matter, str]] = {
    "health": """过敏 病 症 癌 瘤 化疗 放疗 糖尿 血压 血糖 血脂 胆固醇 心脏 抑郁 焦虑 失眠 睡不着 精神科 心理医生 心理咨询 医生 大夫
        医院 诊所 门诊 急诊 住院 手术 开刀 药 胰岛素 抗生素 疫苗 怀孕 孕 流产 堕胎 打胎 试管 月经 例假 痛经 更年期 疼 痛 发烧
        感冒 咳嗽 哮喘 骨折 扭伤 受伤 伤口 残疾 轮椅 癫痫 中风 艾滋 hiv 肝炎 结核 感染 体检 体重 减肥 胖了 瘦了 素食 吃素 忌口
        不吃 不能吃 不喝 麸质 乳糖 不耐 失聪 失明 盲 戒烟 戒酒 酗酒 吸烟 抽烟 自杀 自残 轻生 厌食 暴食 确诊 诊断 治疗 康复
        透析 痴呆 阿尔茨海默 痛风 甲状腺 胃 肾 肝 肺 腰椎 颈椎 关节 湿疹 皮炎 鼻炎 近视 耳鸣 头晕 晕倒 呕吐 拉肚子 腹泻 便秘
        牙医 拔牙 健康 身体不好 不舒服 残障 复查 化验 核磁 饮食""",
    "money": """工资 薪 收入 赚 挣 欠 债 贷 借钱 借了 借款 信用卡 花呗 借呗 银行 存款 存了 储蓄 积蓄 余额 理财 投资 股票 股市 基金
        炒股 比特币 加密货币 税 房租 租金 预算 钱 破产 奖金 养老金 退休金 社保 公积金 保险 遗产 继承 赌 彩票 财务 财产 资产 首付
        月供 分红 穷 富 亏了 赔了 负担不起 买不起 低保 补助 学费 嫁妆 彩礼 元 块 美元 欧元 ¥ 一万 几万 百万 千万""",
    "faith": """信仰 宗教 上帝 真主 安拉 耶稣 基督 天主 教堂 教会 清真 寺 庙 祷告 祈祷 礼拜 信佛 佛教 佛祖 拜佛 念佛 念经 菩萨
        穆斯林 伊斯兰 回教 犹太 印度教 道教 道观 无神论 圣经 古兰经 斋月 斋戒 受洗 洗礼 神父 牧师 阿訇 和尚 尼姑 信教 信主 皈依
        烧香 修行 居士 传教 教徒 信徒 神明 妈祖 东正教 新教 摩门 弥撒 开斋""",
    "sexuality": """同性 异性恋 双性恋 无性恋 泛性恋 性取向 性向 同志 拉拉 蕾丝边 出柜 深柜 跨性别 变性 性别认同 酷儿 性生活 性爱 做爱
        上床 性欲 性冷淡 性病 避孕 安全套 套套 自慰 手淫 色情 黄片 约炮 一夜情 处女 处男 裸照 高潮 阳痿 早泄 男同 女同 lgbt
        喜欢男生 喜欢女生 喜欢男人 喜欢女人 房事 性伴侣 开房 出轨 婚外情 双性 形婚 伟哥""",
    "children": """孩子 小孩 儿子 女儿 宝宝 宝贝 婴儿 娃 闺女 幼儿园 小学 初中 中学 托儿 托班 孙子 孙女 外孙 侄 外甥 未成年 儿童
        少年 学区 家长 班主任 奶粉 尿布 尿不湿 领养 收养 抚养 小朋友 男孩 女孩 老大 老二 二胎 三胎 早教 亲子 幼升小 小升初 双胞胎
        满月 周岁 喂奶 辅导作业 年级""",
}
_SLOTS: Final[Mapping[str, Matter]] = {"allergy": "health", "diet": "health", "health": "health"}
"""Slots of the profile that are such a matter whatever they hold."""


def _read(english: str, chinese: str) -> re.Pattern[str]:
    words = "|".join(word.replace(".", "[ -]") for word in english.split())
    return re.compile(rf"(?<![a-z])(?:{words})(?![a-z])|{'|'.join(map(re.escape, chinese.split()))}")


_WORDS: Final = {matter: _read(_ENGLISH[matter], _CHINESE[matter]) for matter in MATTERS}


def matters(*texts: str) -> frozenset[Matter]:
    """The sensitive matters that texts touch."""
    seen = folded("\n".join(texts))
    return frozenset(matter for matter, words in _WORDS.items() if words.search(seen))


def matters_of(memory: Candidate | Memory) -> frozenset[Matter]:
    """The sensitive matters that a memory, or one that asks to be written, is about.

    Its own words count and those it rests on, and what a slot of the profile is about by itself.
    """
    if isinstance(memory, Candidate):
        attribute, told = memory.attribute, [memory.text, memory.value]
        told += [citation.quote for citation in memory.citations]
    else:
        attribute = memory.attribute if isinstance(memory, ProfileLine) else ""
        told = [memory.text, *(citation.quote for citation in memory.provenance.citations)]
    slot = _SLOTS.get(attribute.partition(":")[0])
    return matters(*told) | ({slot} if slot else frozenset())


def joined(found: Iterable[str]) -> str:
    """Matters as one value of a column, in their fixed order; "" for none."""
    chosen = set(found)
    return ",".join(matter for matter in MATTERS if matter in chosen)


def parted(value: str | None) -> frozenset[Matter]:
    """The matters of such a value."""
    held = set((value or "").split(","))
    return frozenset(matter for matter in MATTERS if matter in held)
