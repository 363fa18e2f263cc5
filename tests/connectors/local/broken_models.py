"""Models that fail in every way that a user's may; imported by the worker only."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import time

import numpy as np

from connectors.local.model import Audio, Declaration, Done, LocalModel, Text
from harness.core.errors import PrerequisiteError


class Base(LocalModel):
    """Hears all and answers what a subclass says."""

    def push_audio(self, pcm):
        return None


class Quick(Base):
    @property
    def declaration(self):
        return Declaration(step_limit_s=0.5)


class SleepsInPush(Quick):
    def push_audio(self, pcm):
        time.sleep(60)


class HoldsTheInterpreter(Quick):
    def push_audio(self, pcm):
        # PyDLL keeps the interpreter's lock: no other thread of the process runs.
        ctypes.PyDLL(None).sleep(60)


class SlowStart(Quick):
    def start(self, session):
        time.sleep(60)


class OutOfMemory(Base):
    def end_turn(self):
        yield Text("so")
        raise MemoryError("CUDA out of memory, tried to allocate everything")


class Exits(Base):
    def load(self):
        print("this goes to standard error")
        os.write(2, b"loading\nno space left for weights\n")
        os._exit(7)


class RaisesInLoad(Base):
    def load(self):
        raise RuntimeError("weights are damaged")


class NeedsSomething(Base):
    def load(self):
        raise PrerequisiteError("weights are missing: get them with `fetch-weights`")


class LoadsForEver(Base):
    @property
    def declaration(self):
        return Declaration(load_limit_s=0.3)

    def load(self):
        time.sleep(60)


class WrongRate(Base):
    @property
    def declaration(self):
        return Declaration(output_rate_hz=24)


class Floods(Base):
    def end_turn(self):
        for _ in range(3000):
            yield Audio(np.full(480, 1000, dtype=np.int16))


class FloodsForEver(Base):
    def end_turn(self):
        while True:
            yield Audio(np.full(240_000, 1000, dtype=np.int16))


class OneHugePacket(Base):
    def end_turn(self):
        yield Audio(np.zeros(40 << 20, dtype=np.int16))


class BabblesForEver(Base):
    def end_turn(self):
        while True:
            yield Text("a" * 20_000)


class Prints(Base):
    def end_turn(self):
        for _ in range(200):
            print("x" * (1 << 20))
        time.sleep(0.6)
        print("the last line")
        yield Text(str(os.fstat(2).st_size))


def start_a_child():
    return subprocess.Popen(["sleep", "777"]).pid


class StartsAChild(Base):
    """Says the child's number."""

    def end_turn(self):
        yield Text(str(start_a_child()))


class StartsAChildAndDies(Base):
    def end_turn(self):
        yield Text(str(start_a_child()))
        os._exit(3)


class ForksAndDies(Base):
    """The fork holds the socket open."""

    def end_turn(self):
        child = os.fork()
        if child == 0:
            time.sleep(777)
        yield Text(str(child))
        os._exit(3)


class Stereo(Base):
    def end_turn(self):
        yield Audio(np.zeros((480, 2), dtype=np.int16))


class NotFinite(Base):
    def end_turn(self):
        yield Audio(np.full(480, np.nan, dtype=np.float32))


class WritesIntoTheSocket(Base):
    """As a library may that takes a number for a file of its own."""

    def end_turn(self):
        for fd in range(3, 40):
            with contextlib.suppress(OSError):
                os.write(fd, b"\x01\x00\x00\x00g")
        yield Text("a")


class ForgetsToYield(Base):
    def end_turn(self):
        print("an answer")


class WrongPacing(Base):
    @property
    def declaration(self):
        return Declaration(pacing="fast")


class YieldsNonsense(Base):
    def end_turn(self):
        yield "words"


class Duplex(LocalModel):
    """Answers each 80 ms with 80 ms, as models without turns do."""

    @property
    def declaration(self):
        return Declaration(pacing="input_clocked", unit_samples=1920, continuous=True, text="with_audio")

    @property
    def facts(self):
        return {"device": "cpu", "weights": "none"}

    def push_audio(self, pcm):
        assert pcm.shape == (1920,)
        yield Text("a")
        yield Audio(pcm.astype(np.float32) / 32768)


class Continues(LocalModel):
    """Has turns, but answers from `push_audio` and says itself when it is done."""

    def push_audio(self, pcm):
        yield Text("hello")
        yield Audio(pcm)
        yield Done({"tokens": 1})


class Configurable(Base):
    def __init__(self, *, size: int, name: str = "x", model: str = "none", fast: bool = False) -> None:
        self.said = f"{size + 1}{name}{model}{fast}"

    def end_turn(self):
        yield Text(self.said)


NotAModel = dict
