"""A small labelled set: everyday statements of one person, questions they answer, and questions they do not."""

from __future__ import annotations

from typing import Final

STATEMENTS_ZH: Final = (
    "我每周三下午都在力健练背",
    "我对花粉过敏",
    "昨天给阳台的番茄搭了架子",
    "我女儿下个月要参加钢琴比赛",
    "公司最近把打卡改成人脸识别了",
    "楼下新开的面馆排队排到马路上",
    "我妈妈做的酸菜鱼特别好吃",
    "上周末和老王去水库钓鱼了",
    "我的显示器买的是27寸的",
    "冰箱的灯泡坏了",
    "今年的年终奖比去年少",
    "我在读一本讲罗马史的书",
    "昨晚失眠到三点",
    "我养了两只仓鼠",
    "我们小区停车费涨到每月四百",
    "我打算把头发剪短",
    "同事小李辞职去考公务员了",
    "我家的路由器总是断线",
    "我喜欢喝不加糖的美式",
    "下周二要交季度报告",
    "我弟弟在成都读研究生",
    "我把旧吉他送给邻居家的孩子了",
    "最近在看一部讲潜艇的电视剧",
    "我开车上班大概要四十分钟",
    "家里的洗衣机声音越来越大",
    "我同学聚会订在国庆第二天",
    "我的近视又涨了五十度",
    "周六要带奶奶去配助听器",
    "我不太能吃辣",
    "这个月水电费一共三百二",
    "我想学做提拉米苏",
    "前几天在公园捡到一把钥匙",
)

STATEMENTS_EN: Final = (
    "I train my back at Gold's every Wednesday afternoon",
    "I am allergic to pollen",
    "Yesterday I built a frame for the tomatoes on the balcony",
    "My daughter plays in a piano competition next month",
    "The company switched to face recognition at the entrance",
    "The new noodle place downstairs has a line out to the street",
    "My mother's fish stew is the best",
    "I went fishing with Tom last weekend",
    "My monitor is a 27 inch one",
    "The light in the fridge is broken",
    "The bonus was smaller than last year's",
    "I am reading a book about Roman history",
    "I could not sleep until three last night",
    "I keep two hamsters",
    "Parking in our block went up to 60 a month",
    "I want to cut my hair short",
    "My colleague Lee quit to become a civil servant",
    "Our router keeps losing the connection",
    "I like my coffee black without sugar",
    "The quarterly report is due next Tuesday",
    "My brother studies in Boston",
    "I gave my old guitar to the neighbour's kid",
    "I am watching a series about submarines",
    "My commute by car takes forty minutes",
    "The washing machine is getting louder",
    "The class reunion is on the second of October",
    "My eyes got worse again",
    "On Saturday I take grandma to get a hearing aid",
    "I can't eat very spicy food",
    "Electricity and water were 45 this month",
    "I would like to learn to make tiramisu",
    "I found a key in the park the other day",
)

OWN_ZH: Final = (
    ("我一般去哪儿健身", 0),
    ("我有什么过敏症状", 1),
    ("我的宠物是什么", 13),
    ("我平时喝什么咖啡", 18),
    ("我女儿有什么特长", 3),
    ("我上班通勤多久", 23),
    ("谁在外地念书", 20),
    ("家里网络怎么样", 17),
    ("我的视力如何", 26),
    ("春天出门要注意什么", 1),
    ("我休息日去做了什么户外活动", 7),
    ("我妈做什么菜最拿手", 6),
    ("我的显示器多大", 8),
    ("我弟弟现在在哪儿", 20),
    ("我们小区停车怎么收费", 14),
    ("我在看什么书", 11),
)
"""Questions, each with the place of the statement that answers it."""

OWN_EN: Final = (
    ("Where do I usually work out?", 0),
    ("What allergy symptoms might I have in spring?", 1),
    ("What pets do I have?", 13),
    ("How do I take my coffee?", 18),
    ("What instrument does my girl play?", 3),
    ("How long do I drive to the office?", 23),
    ("Where is my sibling at university?", 20),
    ("Is the wifi at home any good?", 17),
    ("What deadline is coming up at work?", 19),
    ("What is my mother's best dish?", 6),
    ("How big is my monitor?", 8),
    ("What am I reading?", 11),
    ("Who gave up the job at my company?", 16),
    ("What do I want to bake?", 30),
)
"""Questions, each with the place of the statement that answers it."""

FOREIGN_ZH: Final = (
    "法国的首都是哪里",
    "写一首关于秋天的诗",
    "今天天气真好",
    "帮我翻译一句话",
    "什么是量子计算",
    "1+1等于几",
    "怎么用Python读取文件",
    "我在哪家银行开的户",
    "我丈母娘住哪个城市",
    "我的血型是什么",
    "讲个笑话",
    "太阳有多大",
    "我以前的房东叫什么",
    "为什么天是蓝的",
    "给我讲讲唐朝的历史",
    "我第一只手表是谁送的",
    "帮我写一封请假条",
    "地球离月亮多远",
    "我大学念的什么专业",
    "我的钢笔丢在哪里了",
)

FOREIGN_EN: Final = (
    "What is the capital of France?",
    "Write a poem about autumn",
    "What a nice day",
    "Translate a sentence for me",
    "What is quantum computing?",
    "What is 1+1?",
    "How do I read a file in Python?",
    "At which bank do I have my account?",
    "What is my blood type?",
    "tell me a joke",
    "How big is the sun?",
    "What was my last landlord called?",
    "Why is the sky blue?",
    "Tell me about the Tang dynasty",
    "Who gave me my first watch?",
    "Draft an email asking for a day off",
    "How far away is the moon?",
    "What did I study in college?",
    "Where did I lose my pen?",
    "Where does my mother-in-law live?",
)

FIRST_DAYS_ZH: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (
        "我在光华路的一家设计公司上班",
        (
            "我在哪儿工作",
            "我的公司在什么路上",
        ),
    ),
    (
        "我家狗叫豆包，是只柯基",
        (
            "我养的是什么狗",
            "我的狗叫什么",
        ),
    ),
    (
        "我周六早上去江边跑十公里",
        (
            "我周末一般做什么运动",
            "我每次跑多远",
        ),
    ),
    (
        "我老婆的生日是九月十二号",
        (
            "我媳妇哪天过生日",
            "我该什么时候给老婆准备礼物",
        ),
    ),
    ("我从小就怕水，不会游泳", ("我会游泳吗",)),
    (
        "我开的是一辆白色的比亚迪",
        (
            "我的车是什么牌子",
            "我的车是什么颜色",
        ),
    ),
    ("我爸退休前是中学物理老师", ("我父亲以前做什么工作",)),
    (
        "我正在准备考雅思，目标七分",
        (
            "我最近在复习什么考试",
            "我想考多少分",
        ),
    ),
    ("我的航班是周五晚上八点的", ("我几点的飞机",)),
    (
        "我去年在大理骑车摔断了手腕",
        (
            "我哪里骨折过",
            "我在哪儿出过意外",
        ),
    ),
    ("我每天早上六点半起床", ("我通常几点起来",)),
    ("我给房东押了两个月的租金", ("我交了多少押金",)),
    ("我的鞋码是四十二", ("我穿多大的鞋",)),
    ("我昨天刚看完《流浪地球》", ("我最近看了哪部电影",)),
    ("我的手机屏幕上周摔裂了", ("我的手机怎么了",)),
    ("我和前女友是在图书馆认识的", ("我跟前任怎么认识的",)),
    ("我的显卡是4070", ("我电脑用的什么显卡",)),
    (
        "我打算年底跳槽去上海",
        (
            "我换工作的计划是什么",
            "我准备去哪个城市发展",
        ),
    ),
    ("我结婚是2019年五月", ("我哪年结的婚",)),
    ("我有个双胞胎哥哥", ("我有兄弟姐妹吗",)),
)
"""Statements of a person's first days, each with the questions it answers. The weights were set on others."""

FIRST_DAYS_EN: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (
        "I work as a nurse at St. Mary's hospital",
        (
            "What do I do for a living?",
            "Where do I work?",
        ),
    ),
    (
        "My dog Biscuit is a three year old beagle",
        (
            "What breed is my dog?",
            "What's my dog's name?",
        ),
    ),
    (
        "I run ten kilometres along the river on Sundays",
        (
            "What do I do on Sundays?",
            "How far do I run?",
        ),
    ),
    (
        "My wife's birthday is on the 12th of September",
        (
            "When was my wife born?",
            "When do I need a present for my wife?",
        ),
    ),
    ("I never learned to swim", ("Can I swim?",)),
    (
        "I drive a white Skoda",
        (
            "What car do I have?",
            "What colour is my car?",
        ),
    ),
    ("My dad used to be a physics teacher", ("What did my father do before he retired?",)),
    ("I'm preparing for the IELTS exam", ("What test am I studying for?",)),
    (
        "I moved here from Warsaw six years ago",
        (
            "Where did I live before?",
            "How long have I been here?",
        ),
    ),
    (
        "I broke my wrist skiing in Austria last winter",
        (
            "Which bone did I break?",
            "How did I hurt myself?",
        ),
    ),
    ("I get up at half past five on weekdays", ("What time do I wake up?",)),
    ("I paid two months' rent as a deposit", ("How much deposit did I pay?",)),
    ("I wear size 42 shoes", ("What is my shoe size?",)),
    ("Yesterday I finally watched Interstellar", ("Which film did I see recently?",)),
    ("I dropped my phone and the screen cracked", ("What happened to my phone?",)),
    (
        "I met my husband at a wedding in Rome",
        (
            "How did I meet my husband?",
            "Where did I meet my partner?",
        ),
    ),
    ("My laptop is a ThinkPad with Linux on it", ("What computer do I use?",)),
    ("I plan to change jobs by the end of the year", ("What are my career plans?",)),
    ("We got married in May 2019", ("When was my wedding?",)),
    (
        "I have a twin brother called Max",
        (
            "Do I have siblings?",
            "What is my twin called?",
        ),
    ),
)
"""Statements of a person's first days, each with the questions it answers. The weights were set on others."""

CHAT_ZH: Final = (
    "早上好，新的一周又开始了",
    "嘿，最近怎么样",
    "好久没聊了",
    "打扰一下",
    "麻烦你了",
    "谢谢你的帮忙",
    "你说话真逗",
    "太搞笑了吧",
    "收到，没问题",
    "原来如此，我懂了",
    "说个冷笑话吧",
    "有点困，不想动",
    "今天心情真好",
    "明天会下雨吗",
    "现在几点了",
    "你今年多大了",
    "你喜欢听歌吗",
    "帮我算一下三十六乘以七",
    "法国的首都是哪里",
    "不早了，我要休息了",
)

CHAT_EN: Final = (
    "Hi! Nice to see you again",
    "Yo, what's new?",
    "Hey, long day today",
    "How have you been?",
    "Much appreciated!",
    "Thanks a bunch, you're the best",
    "LOL that's a good one",
    "You're funny",
    "Got it, will do",
    "Sure, why not",
    "Tell me something interesting",
    "I could use a nap",
    "What a lovely morning",
    "Is it cold outside?",
    "What time is it?",
    "Are you a real person?",
    "Who is your favorite singer?",
    "Convert 5 miles to kilometers",
    "What's the capital of France?",
    "Time for bed, see you",
)
"""Small talk put down before the rules of small talk were last changed; none of it ships or is in the bench."""

STATEMENTS: Final = {"zh": STATEMENTS_ZH, "en": STATEMENTS_EN}
OWN: Final = {"zh": OWN_ZH, "en": OWN_EN}
FOREIGN: Final = {"zh": FOREIGN_ZH, "en": FOREIGN_EN}
FIRST_DAYS: Final = {"zh": FIRST_DAYS_ZH, "en": FIRST_DAYS_EN}
CHAT: Final = {"zh": CHAT_ZH, "en": CHAT_EN}
