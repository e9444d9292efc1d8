"""A measuring process whose modules are words: what each one does."""

import os
import signal
import time

import numpy as np

from hlorank_tune.iree.measure import Measured


def serve(connection, request):
    _, modules, _ = request
    for number, module in enumerate(modules):
        connection.send(number)
        if module == b"crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        while module == b"hang":
            time.sleep(0.1)
    connection.send(len(modules))
    times = np.array([float(module) for module in modules])
    connection.send(Measured(["" for _ in modules], [None for _ in modules], times, times + 1, 2))
