"""What the bundled clips say, and in which Kokoro voice; the texts were written for this project."""

from __future__ import annotations

import msgspec


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """One clip: phrases spoken one after the other with `pause_ms` of silence between them."""

    id: str
    language: str
    voice: str
    phrases: tuple[str, ...]
    pause_ms: int = 0

    @property
    def text(self) -> str:
        """The whole text, as a transcript would have it."""
        return (" " if self.language == "en" else "").join(self.phrases)


def _recipes(prefix: str, language: str, rows: tuple[tuple[str, str], ...]) -> tuple[Recipe, ...]:
    return tuple(
        Recipe(
            id=f"{prefix}-{number:02d}",
            language=language,
            voice=voice,
            phrases=tuple(text.split(_PAUSE)),
            pause_ms=600 if _PAUSE in text else 0,
        )
        for number, (voice, text) in enumerate(rows, start=1)
    )


_PAUSE = " | "

QUERIES: tuple[Recipe, ...] = _recipes(
    "en",
    "en",
    (
        ("af_heart", "What is the weather going to be like in Lisbon this weekend?"),
        ("am_michael", "Set a timer for 25 minutes, please."),
        ("bf_emma", "How do I get a red wine stain out of a white shirt?"),
        ("bm_george", "What is 17 times 24?"),
        ("af_bella", "Can you recommend a quiet place for dinner near the river?"),
        ("am_fenrir", "Who wrote the first computer program, and when was that?"),
        ("af_heart", "I have rice, two eggs and some spinach. | What can I cook with that?"),
        ("am_michael", "Remind me to call my sister tomorrow evening."),
        ("bf_emma", "Why is the sky blue during the day but red at sunset?"),
        ("bm_george", "My train leaves at nine fifteen. | When should I leave the house?"),
        ("af_bella", "How many bones are there in the human body?"),
        ("am_fenrir", "Tell me a short joke about a penguin."),
        ("bf_emma", "What should I see in Kyoto if I only have one day?"),
        ("am_michael", "Turn off the lights in the kitchen."),
    ),
) + _recipes(
    "zh",
    "zh",
    (
        ("zf_xiaoxiao", "请问明天北京的天气怎么样？"),
        ("zm_yunxi", "请在二十分钟以后提醒我关火。"),
        ("zf_xiaobei", "咖啡弄脏了衣服，应该怎么清洗？"),
        ("zm_yunxia", "十七乘以二十四等于多少？"),
        ("zf_xiaoyi", "附近有没有安静一点的餐厅？"),
        ("zm_yunjian", "世界上最高的山是哪一座，它有多高？"),
        ("zf_xiaoxiao", "冰箱里有鸡蛋和土豆。 | 今天晚上可以做什么菜？"),
        ("zm_yunxi", "明天下午三点提醒我给妈妈打电话。"),
        ("zf_xiaoyi", "为什么白天的天空是蓝色的？"),
        ("zm_yunxia", "我的火车九点十五分出发。 | 我应该几点出门？"),
        ("zf_xiaobei", "给我讲一个关于大象的笑话。"),
        ("zm_yunjian", "第一次去上海，一天时间应该去哪里玩？"),
        ("zf_xiaoxiao", "请把客厅的灯关掉。"),
        ("zm_yunxia", "我们每天应该喝多少杯水？"),
    ),
)

ANSWERS: tuple[Recipe, ...] = _recipes(
    "answer-en",
    "en",
    (
        ("af_heart", "Good question. The short answer is yes, and I can walk you through it step by step."),
        ("af_heart", "Certainly. I have made a note of that, and I will remind you when the time comes."),
        ("af_heart", "Tomorrow looks mild and mostly dry, with a light wind from the west."),
        ("af_heart", "Depending on how much time you have, I would start in the old town and finish by the river."),
        ("af_heart", "All done. Is there anything else that I can help you with today?"),
    ),
) + _recipes(
    "answer-zh",
    "zh",
    (
        ("zf_xiaoxiao", "当然可以。我已经帮你记下来了，到时候会提醒你。"),
        ("zf_xiaoxiao", "我查了一下，明天天气很好，气温在二十度左右，适合出门散步。"),
        ("zf_xiaoxiao", "这个问题很有意思。简单来说，答案是可以的。"),
        ("zf_xiaoxiao", "我建议上午先去博物馆参观，然后再去江边看看夜景。"),
        ("zf_xiaoxiao", "已经为你安排好了。请问还有什么可以帮你的吗？"),
    ),
)
