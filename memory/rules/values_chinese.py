"""What a Chinese value may look like: the check that keeps 的人搬走了 from being liked and 加班 from being a name."""

from __future__ import annotations

import re
from typing import Final

from memory.rules.grammar import any_of
from memory.rules.values_english import LATIN_NAME, LISTED, is_english_name

ALLERGENS: Final = any_of(
    "花生 坚果 核桃 杏仁 腰果 海鲜 鱼虾 虾蟹 虾 螃蟹 蟹 贝类 花粉 尘螨 螨虫 粉尘 灰尘 青霉素 头孢 "
    "阿莫西林 磺胺 阿司匹林 碘 牛奶 乳制品 鸡蛋 鸡毛",
    "猫毛 狗毛 宠物毛 动物毛发 酒精 乳胶 小麦 麸质 大豆 黄豆 芒果 桃子 菠萝 猕猴桃 草莓 芝麻 紫外线 "
    "冷空气 柳絮 杨絮 霉菌 香水 染发剂 金属 镍",
)
SPECIES: Final = any_of(
    "猫咪 猫猫 猫 狗狗 狗 小狗 小猫 兔子 仓鼠 鹦鹉 乌龟 金毛 柯基 柴犬 泰迪 哈士奇 边牧 拉布拉多 布偶 橘猫 英短 美短"
)
STYLES: Final = any_of(
    "简短 简洁 简单 短 详细 直接 口语化 用中文 用英文 用英语 用繁体(?:中文)? 用简体(?:中文)? 正式 随意"
)
FIELDS: Final = any_of(
    "前端 后端 运维 测试 产品 设计 平面设计 销售 运营 外贸 电商 会计 财务 市场 建筑 餐饮 物流 教育 金融 保险 房地产",
    "人力资源? 行政 广告 自媒体 新媒体 编程 开发 算法 美容 装修 直播 翻译 it 芯片 游戏 医疗 法务 审计 公关 采购",
)

_TIMED: Final = re.compile(r"每|今[天晚年早]|明[天年]|周[一二三四五六日末]|你|[这那]")
_WORKPLACE: Final = re.compile(
    "在(?:一?家|一?所|一?个|一?间)?(?:[^家哪那这]{0,8}"
    + any_of(
        "银行 医院 诊所 学校 大学 中学 小学 幼儿园 公司 集团 工厂 餐厅 饭店 酒店 超市 研究所 律所 事务所 图书馆",
        "[^公现全]厂",
        "报社",
    )
    + "|"
    + any_of(
        "北京 上海 广州 深圳 天津 重庆 成都 杭州 南京 武汉 西安 苏州 长沙 郑州 青岛 大连 厦门 宁波 福州 合肥 济南 沈阳",
        "哈尔滨 长春 昆明 南昌 贵阳 南宁 海口 太原 石家庄 兰州 银川 西宁 乌鲁木齐 拉萨 东莞 佛山 无锡 珠海 香港 澳门",
        "台北 台中 台南 高雄 新竹 桃园 东京 大阪 首尔 新加坡 曼谷 伦敦 纽约 巴黎 柏林 悉尼 墨尔本 多伦多 温哥华",
    )
    + "市?)(?:那边|这边)?(?:上班|工作|读书|念书|上大学|读研|读博|当兵)"
)

_LONGEST_LIST_ITEM: Final = 6
_LONGEST_ALLERGEN: Final = 10
_GIVEN_LENGTHS: Final = (2, 3)

_SURNAMES: Final = frozenset(
    "赵钱孙李周吴郑王冯陈褚卫蒋沈韩杨朱秦尤许何吕施张孔曹严华金魏陶姜戚谢邹喻苏潘葛范彭郎鲁韦马苗方俞任袁柳鲍史唐费廉岑薛雷贺倪汤罗毕"
    "郝邬安常乐于傅齐康伍余元顾孟黄穆萧尹姚邵汪毛狄米贝臧戴谈宋茅庞熊纪舒屈项祝董梁杜阮蓝闵席季贾路娄江童颜郭梅盛林刁钟徐邱骆高夏蔡田樊胡"
    "宫殷段佘仲晋楚甘冼阚湛凌霍虞万柯卢莫房丁邓洪包左石崔吉龚程邢裴陆荣翁荀甄曲封储靳焦牧山谷侯宁仇祖武符刘景詹龙叶幸司黎薄印白蒲邰从鄂索赖卓池乔闻党翟谭劳姬"
    "申冉桑桂牛边尚温庄晏柴瞿阎连习艾鱼向古易慎戈廖衡步耿满匡文寇欧师巩聂晁敖冷辛简饶曾沙丰巢关相查红游权盖桓公肖涂覃佟岳"
)
_COMPOUND_SURNAMES: Final = any_of("欧阳 司马 诸葛 上官 慕容 令狐 夏侯 皇甫 东方 尉迟 公孙 宇文 司徒 南宫")
_NO_NAME: Final = re.compile(
    r"[了吗呢吧么不没的得着过您你我他她它们什谁哪个这那把被给让在去来到起床饭喊醒]"
    r"|外卖|快递|代驾|滴滴|出租|快车|专车|网约|救护|跑腿|顺丰|服务|保安|警察|朋友|同学们|大家|家长|"
    r"老板娘|起名|名字|加班|开会|上班|下班|吃|喝|睡|爸爸|妈妈|爷爷|奶奶|哥哥|姐姐|老公|老婆|高兴|安静|随便|认真|司机|马上|于是|何时|常常|从此"
)
_NICKNAME: Final = re.compile(
    r"(?:[小阿老大][一-鿿]{1,2}|[小阿老][a-z]{1,8}|(?P<same>[一-鿿])(?P=same)|[一-鿿]{1,3}(?:哥|姐|总|叔|姨|爷|老师|老板|"
    r"同学|先生|女士|小姐|医生|师傅|公主|大人|陛下|王|队长|船长|博士|教授))"
)
_GIVEN: Final = (
    "伟芳娜敏静丽强磊军洋勇艳杰娟涛明超秀霞平刚桂英华玉兰飞鹏婷雅琪琳欣怡萱涵梓浩宇轩诗雨佳慧颖莹倩晓彤瑶璐蕾薇莉婉晴岚嘉俊豪"
    "凯翔博文斌峰辉鑫宏建志国庆哲睿泽晨曦昊铭航逸轩恒思凡宁悦菲蓉珊珍淑惠美玲凤梅菁琴云燕红芬萍荣健帅旭阳亮智毅"
)
_GIVEN_NAME: Final = re.compile(f"[{_GIVEN}]{{2}}")
_MINORITY_NAME: Final = re.compile(r"[一-鿿]{2,8}(?:[·•][一-鿿]{1,8}){1,3}")
_NO_PLACE: Final = re.compile(
    r"^[的得过了着到在一这那哪你我他她它不很]|真好|半[年月]|[不没了吗呢吧么你我他她它谁]|酒店|宾馆|民宿|旅馆|医院|学校|"
    r"宿舍|[住校]院|朋友|同学|亲戚|家里|一起|隔壁|楼上|楼下"
    r"|^(?:院|校|宿|处|所|户|店|人|满|楼|外面|外地|公司|家|里面|惯|得)|"
    r"[0-9一二三四五六七八九十几]+[楼层号]|天$|晚$|个月$|[梦心回忆世]里$|几天|火星|月球|太阳|的|^(?:装修|盖|打|吃|吵|做|等|办|开|下|睡)"
)
_NO_THING: Final = re.compile(
    r"^[吃喝看听做玩]$|^[的得过着到不没就死好您这那谁哪跟对是有要想]|^上(?![海网学课山])|[这那]些|^[他她它](?!们?的|家)|[吗呢吧么]|"
    r"了(?!解)|(?<!自)我|你|什么|怎么|今天|昨天|明天|刚才|现在|今晚|这[个种家样款首部本次点道]|"
    r"那[个家样款首部本次]"
    r"|如果|因为|所以|但是|就[是要会买]|却|才[会能]|一个人(?:$|[^旅])|死了|极了|得不得|"
    r"^和[一-鿿]*$(?<!的事)(?<![玩去聊看吃做爬跑散打聚]..)|谁谁|上班摸鱼|^人$|^[一-鿿]?家$"
)
_NO_ALLERGEN: Final = re.compile(
    r"有[点些]|[对的了吗呢吧么你我他她它谁不]|上班|工作|老板|领导|客户|美女|帅哥|女人|男人|家务|生活|现实|学习|周一|星期一|早起|数学|考试|运动|开会|加班|"
    r"婚姻|爱情|人类|甲方|人|恋爱|同事|朋友|什么|皮肤|鼻子|眼睛|^脸|身体|钱|说教|尴尬|文科|理科|作业|"
    r"起床|季节|可能|好像"
)
_NO_FOOD: Final = re.compile(
    r"^(?:不|没|不能|不可以|没法|从来?不|一律不|一点都不)*[吃喝碰沾](?:了|饭|早饭|午饭|晚饭|早餐|午餐|"
    r"晚餐|夜宵|东西|药|亏|醋|苦|软|硬|这|那|得|完|饱|到|你|我|他|她|老本|闲饭|白食|眼前|香$|它|瓷|壁|"
    r"面子|任何东西|也|就|惊|水了|一口|上|起|不)"
    r"|[了吗呢吧么你我他她它]|今天|现在|今晚|的话|怎么|多|点|会|死|就"
)
_JOB: Final = re.compile(
    r"(?!.*[不了吗呢吧么你我他她它很好坏谁])(?:[^\0]{0,12}?)"
    + any_of(
        "医生 护士 工程师 程序员 老师 教师 律师 会计 出纳 厨师 司机 大?学生 高中生 初中生 研究生 博士生? "
        "设计师 经理 销售员? 翻译 记者 编辑 作家 画家 演员",
        "警察 军人 农民 工人 店长 店员 顾问 分析师 运营 公务员 教授 研究员 摄影师 建筑师 药剂师 药师 "
        "牙医 兽医 导游 空姐 飞行员 消防员 保安 快递员 外卖员",
        "外卖骑手 主播 博主 自由职业者? 创业者 家庭主妇 全职妈妈 全职爸爸 咖啡师 理发师 美容师 "
        "心理咨询师 咨询师 审计师? 程序猿 码农 产品经理 项目经理 架构师",
        "测试员? 数据科学家 科学家 音乐人 歌手 导演 编剧 插画师 化妆师 健身教练 教练 社工 图书管理员 "
        "收银员 服务员 客服 秘书 助理 行政 法官 检察官 海员 船长 渔民",
        "木匠 电工 水管工 技师 麻醉师 营养师 康复师 育儿师 幼师 护理师 保育员 药剂员 技术员 业务员",
        "校长 院长 辅导员 策划 猎头 人事 讲师 自媒体",
    )
)
_LANGUAGES: Final = any_of(
    "中文 汉语 普通话 粤语 闽南语 客家话 上海话 四川话 英语 英文 法语 德语 日语 日文 韩语 韩文 "
    "西班牙语 葡萄牙语 意大利语 俄语 阿拉伯语 泰语 越南语 印尼语 马来语",
    "荷兰语 瑞典语 波兰语 土耳其语 印地语 希腊语 拉丁语 手语 藏语 蒙语 维吾尔语 保加利亚语",
)
_LANGUAGE: Final = re.compile(f"(?:一点|流利的?)?{_LANGUAGES}")
_ORIGIN: Final = re.compile(
    r"(?!.*[了吗呢吧么你我他她它好坏的])(?!中国$|本地|外地|现代|当地|公司|单位|学校|家里|未来|过去|火星|月球|地球|外星|成年|普通|女|男|老|有钱|什么|同|"
    r"个|工|机器|负责|主|客|一)[一-鿿]{2,8}(?<![好坏诗爱情恋路同])"
)

_PAIRS: Final = any_of(
    "温和 平和 和平 和谐 暖和 柔和 共和 和尚 和服 和牛 和田 饱和 总和 和解 缓和 祥和 随和 和风 跟风 "
    "跟踪 跟团 高跟 鞋跟 与众 参与"
)
_LIST: Final = re.compile(r"[、/]|(?<=[^\s])(?:以及|还有|和|跟|与)(?=\S)")


def split(words: str, attribute: str) -> list[tuple[int, int]]:
    """Cut 猫、狗和鸟 into its values; 和 cuts only between two short nouns."""
    if attribute not in LISTED:
        return [(0, len(words))]
    protected = re.sub(_PAIRS, lambda found: "\x01" * len(found[0]), words)
    cuts = [found.span() for found in _LIST.finditer(protected)]
    edges = [0, *(edge for cut in cuts for edge in cut), len(words)]
    items = [(edges[index], edges[index + 1]) for index in range(0, len(edges), 2)]
    soft = any(words[left:right] not in "、/" for left, right in cuts)
    if any(right <= left for left, right in items):
        return [(0, len(words))]
    if words.startswith("在") or (
        "的" in words[slice(*items[-1])] and not any("的" in words[a:b] for a, b in items[:-1])
    ):
        return [(0, len(words))]
    if soft and any(right - left > _LONGEST_LIST_ITEM or "的" in words[left:right] for left, right in items):
        return [(0, len(words))]
    return items


def fits(attribute: str, words: str, written: str, clause: str) -> bool:
    """Whether a folded value, ``written`` like this in its ``clause``, may fill an attribute."""
    if not words:
        return False
    match attribute:
        case "name" | "address" | "pet":
            return _is_chinese_name(words, written, clause, strict=attribute == "name")
        case "home":
            return not _NO_PLACE.search(words) and len(words) > 1
        case "origin":
            return _ORIGIN.fullmatch(words) is not None or LATIN_NAME.fullmatch(words) is not None
        case "allergy":
            return not _NO_ALLERGEN.search(words) and len(words) <= _LONGEST_ALLERGEN
        case "diet":
            return not _NO_FOOD.search(words)
        case "like" | "dislike":
            return not _NO_THING.search(words)
        case "favourite":
            return not _NO_THING.search(words) and "的" not in words[-1]
        case "fact__left":
            return not _TIMED.search(words)
        case "fact__workplace":
            return _WORKPLACE.search(words) is not None
        case "job":
            return words == "退休" or _JOB.fullmatch(words) is not None
        case "language":
            return _LANGUAGE.fullmatch(words) is not None
        case _:
            return True


def _is_chinese_name(words: str, written: str, clause: str, *, strict: bool) -> bool:
    if LATIN_NAME.fullmatch(words):
        return is_english_name(words, written, clause)
    if _MINORITY_NAME.fullmatch(words):
        return True
    if _NO_NAME.search(words) or not re.fullmatch(r"[一-鿿]{2,6}", words):
        return False
    if not strict:
        return True
    given = re.fullmatch(f"{_COMPOUND_SURNAMES}[一-鿿]{{1,2}}", words)
    return bool(
        given
        or _GIVEN_NAME.fullmatch(words)
        or _NICKNAME.fullmatch(words)
        or (words[0] in _SURNAMES and len(words) in _GIVEN_LENGTHS)
    )
