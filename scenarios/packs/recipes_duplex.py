"""What the clips of the duplex packs say, and the noises in them; the texts were written for this project.

Ids: `q` questions, `long` turns that hold the floor, `pause` turns with a silence inside, `int` interruptions, `bc`
backchannels, `side` words to somebody else in the room, `bg` other people, `self` self-corrections, `noise` no speech.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from scenarios.packs.recipes import Recipe

PAUSE_MS = 1200
"""Silence inside a turn: longer than the end-of-turn silence of common detectors (0.2 to 0.8 s)."""
BACKGROUND_DB = -12.0
"""Level of people in the background against the user's own voice."""
SPELLING = {"Mm-hm.": "Um-hum."}
"""How a sound is written for the phonemizer, which would read the usual spelling letter by letter."""
_PAUSE = " | "

Noise = Literal["cough", "throat", "sneeze", "door", "keyboard", "hum"]


class NoiseRecipe(msgspec.Struct, frozen=True, kw_only=True):
    """A sound that is no speech, made by `scenarios.packs.noises` from its seed."""

    id: str
    language: str
    sound: Noise
    seed: int
    text: str


def _spoken(language: str, rows: dict[str, tuple[tuple[str, str], ...]]) -> tuple[Recipe, ...]:
    return tuple(
        Recipe(
            id=f"{language}-{group}-{number:02d}",
            language=language,
            voice=voice,
            phrases=tuple(text.split(_PAUSE)),
            pause_ms=PAUSE_MS if _PAUSE in text else 0,
        )
        for group, pairs in rows.items()
        for number, (voice, text) in enumerate(pairs, start=1)
    )


def _noises(language: str) -> tuple[NoiseRecipe, ...]:
    sounds: tuple[Noise, ...] = ("cough", "throat", "sneeze", "door", "keyboard", "hum")
    return tuple(
        NoiseRecipe(id=f"{language}-noise-{number:02d}", language=language, sound=sound, seed=number, text=f"[{sound}]")
        for number, sound in enumerate(sounds, start=1)
    )


DUPLEX_EN: tuple[Recipe, ...] = _spoken(
    "en",
    {
        "q": (
            ("af_heart", "Which museums are open on Monday?"),
            ("am_michael", "How long should I boil an egg?"),
            ("bf_emma", "Tell me about the history of this town."),
            ("bm_george", "What is a good way to learn to swim?"),
            ("af_bella", "Can you explain how rainbows are made?"),
            ("am_fenrir", "Give me an idea for a rainy afternoon."),
            ("af_heart", "How do I keep my plants alive in winter?"),
            ("bm_george", "What should I pack for a week by the sea?"),
        ),
        "long": (
            ("bf_emma", "I would like to plan a trip for my parents, who do not like to walk very far."),
            ("am_michael", "So I was thinking that we could paint the kitchen first and then the hall."),
        ),
        "pause": (
            ("af_heart", "I want to book a table for | four people on Friday."),
            ("am_michael", "The thing that I wanted to ask is | where I can park the car."),
            ("bf_emma", "Please send the letter to | my brother in Dublin."),
        ),
        "int": (
            ("af_heart", "Wait, is it free to get in?"),
            ("am_michael", "Stop, please."),
            ("bf_emma", "Sorry, a shorter answer would do."),
            ("bm_george", "No, I meant the other one."),
            ("af_bella", "Hold on, can you say that again?"),
            ("am_fenrir", "Okay, and what does it cost?"),
        ),
        "bc": (
            ("af_heart", "Mm-hm."),
            ("am_michael", "Uh-huh."),
            ("bf_emma", "Right."),
            ("af_bella", "I see."),
            ("am_fenrir", "Yeah."),
        ),
        "side": (
            ("af_heart", "Just put it on the table, thanks."),
            ("am_michael", "I am on the phone, I will be with you soon."),
            ("bf_emma", "No, the dog has already been fed."),
        ),
        "bg": (
            ("am_fenrir", "And then he told me that the shop was closed all week."),
            ("bm_george", "The next train to the airport leaves from the other side."),
        ),
        "self": (
            ("bm_george", "Set the alarm for seven, no, sorry, for half past eight."),
            ("af_bella", "Call Anna. I mean, call her sister Maria."),
        ),
    },
)

DUPLEX_ZH: tuple[Recipe, ...] = _spoken(
    "zh",
    {
        "q": (
            ("zf_xiaoxiao", "星期一有哪些博物馆开门？"),
            ("zm_yunxi", "鸡蛋应该煮几分钟？"),
            ("zf_xiaobei", "请给我讲讲这座城市的历史。"),
            ("zm_yunxia", "怎样才能学会游泳？"),
            ("zf_xiaoyi", "你能解释一下彩虹是怎么形成的吗？"),
            ("zm_yunjian", "下雨的下午可以做些什么？"),
            ("zf_xiaoxiao", "冬天怎么照顾家里的花？"),
            ("zm_yunxia", "去海边玩一个星期要带什么？"),
        ),
        "long": (
            ("zf_xiaoyi", "我想给爸爸妈妈安排一次旅行，他们不喜欢走太远的路。"),
            ("zm_yunxi", "我在想，我们可以先刷厨房的墙，然后再刷客厅的墙。"),
        ),
        "pause": (
            ("zf_xiaoxiao", "我想订一个星期五晚上的 | 四个人的座位。"),
            ("zm_yunxi", "我想问的问题是 | 车可以停在哪里。"),
            ("zf_xiaobei", "请把这封信寄给 | 我在广州的弟弟。"),
        ),
        "int": (
            ("zf_xiaoxiao", "等一下，门票要钱吗？"),
            ("zm_yunxi", "请停一下。"),
            ("zf_xiaobei", "不好意思，说得短一点就行。"),
            ("zm_yunxia", "不是，我说的是另外一个。"),
            ("zf_xiaoyi", "等等，你能再说一遍吗？"),
            ("zm_yunjian", "好的，那要多少钱？"),
        ),
        "bc": (
            ("zf_xiaoxiao", "嗯。"),
            ("zm_yunxi", "嗯嗯。"),
            ("zf_xiaobei", "对。"),
            ("zf_xiaoyi", "是的。"),
            ("zm_yunjian", "好的。"),
        ),
        "side": (
            ("zf_xiaoxiao", "放在桌子上就可以了，谢谢。"),
            ("zm_yunxi", "我在打电话，马上就过来。"),
            ("zf_xiaobei", "不用，狗已经喂过了。"),
        ),
        "bg": (
            ("zm_yunjian", "后来他告诉我，那家商店整个星期都没有开门。"),
            ("zm_yunxia", "去机场的下一班火车在对面的站台出发。"),
        ),
        "self": (
            ("zm_yunxia", "把闹钟定在七点，不对，定在八点半。"),
            ("zf_xiaoyi", "给安娜打电话。不，打给她的妹妹玛丽。"),
        ),
    },
)

NOISES: dict[str, tuple[NoiseRecipe, ...]] = {"en": _noises("en"), "zh": _noises("zh")}
DUPLEX: dict[str, tuple[Recipe, ...]] = {"en": DUPLEX_EN, "zh": DUPLEX_ZH}
