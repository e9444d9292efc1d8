"""Programs that are words, which say what they do; the process that measures imports this."""

import os
import signal
import time
from dataclasses import dataclass

import numpy as np

from hlorank_tune.measure.host import TOLERANCE, Run

RESULTS = {"wrong": [2.0], "other shape": [1.0, 1.0], "text": ["no number"], "nan": [np.nan]}


@dataclass
class Words:
    patience: float = 30.0
    slow: float = 10.0
    tolerance: float = TOLERANCE

    def load(self, program):
        if program == b"refused":
            raise ValueError("no such word\nat all")
        return Word(program.decode())

    def failure(self, error, is_loaded):
        return ("crash" if is_loaded else "compile") if isinstance(error, ValueError) else None


class Word(Run):
    def __init__(self, word):
        self.word = word
        self.runs = 0

    def results(self):
        match self.word:
            case "raises":
                raise ValueError("it ends")
            case "harness":
                raise TypeError("a mistake")
            case "exits":
                os._exit(1)
            case "hangs":
                time.sleep(600)
            case "differs":
                return [np.random.default_rng().random(1)]
            case word if word.startswith("SIG"):
                print("Check failed", flush=True)
                os.kill(os.getpid(), getattr(signal, word))
        return [np.array(RESULTS.get(self.word, [1.0]))]

    def __call__(self):
        self.runs += 1
        if self.word == "late" and self.runs > 2:
            os.kill(os.getpid(), signal.SIGSEGV)
        time.sleep(0.02 if self.word == "slow" else 0.0005)
