# Generated from stream.py of ``aio``: change that one.
"""A stream of batches to a server, and of their scores back."""

from collections import deque
from typing import Self

from hlorank.answers.checked import Asked, check_batch
from hlorank.answers.converted import converted
from hlorank.answers.models import ModelReference
from hlorank.answers.ranking import (
    BatchScores,
    Ranking,
    Timings,
    batch_scores_of,
    model_of_answer,
)
from hlorank.checks.arguments import instance
from hlorank.checks.errors import AnswerError, BatchTooLongError
from hlorank.configurations import Configurations
from hlorank.configurations.batch import Batch
from hlorank.wire.messages import (
    RankConfigsStarted,
    RankConfigsStreamRequest,
    RankConfigsStreamResponse,
)
from hlorank.wire.transport import Connected, SyncExchange
from hlorank.wire.words import Task

Exchange = SyncExchange[RankConfigsStreamResponse]


class RankStream(Connected):
    """A stream of batches to a server, and of their scores back.

    Take scores while you send: apart from what is in transit, the server reads a batch only after
    the scores of the previous one were taken, and ``send`` then blocks.
    Only one thread or task may use a stream at a time. Leaving its ``with`` block before ``finish``
    cancels the call.
    """

    def __init__(
        self,
        exchange: Exchange,
        started: RankConfigsStarted,
        task: Task,
        top_k: int,
        message_bytes: int,
    ):
        self._exchange = exchange
        self._task = task
        self._top_k = top_k
        self._message_bytes = message_bytes
        self._timings = converted(Timings, started.timings)
        self._unscored: deque[int] = deque()
        """Number of configurations of each sent batch whose scores were not taken yet."""
        self._scored = 0
        self.model: ModelReference | None = model_of_answer(started.model)
        """The model version that scores; None if none does, but measurements alone."""

    def send(self, configurations: Configurations) -> None:
        """Sends a batch, after the previous one has been sent.

        Raises:
            BatchTooLongError: if it exceeds the maximum message length. The stream remains usable.
            RefusedError: if the server ended the stream.
        """
        instance(configurations, Batch, "configurations", "Layouts, Tiles, Fusions or others")
        message = RankConfigsStreamRequest(batch=configurations.wire).SerializeToString()
        if len(message) > self._message_bytes:
            raise BatchTooLongError(len(message), self._message_bytes)
        # Before the write, since the scores may arrive while it returns.
        self._unscored.append(len(configurations))
        written = False
        try:
            written = self._exchange.write(message)
        finally:
            if not written:
                self._unscored.pop()
        if not written:
            # The status with which the server ended the stream follows its last message.
            while self._exchange.read() is not None:
                pass
            raise AnswerError("the server ended the stream early")

    def scores(self) -> BatchScores | None:
        """Waits for the scores of the earliest batch whose scores were not taken yet.

        Returns None if the scores of every batch were taken.
        """
        if not self._unscored:
            return None
        batch = batch_scores_of((next_part(self._exchange, "scores")).scores)
        configs = self._unscored.popleft()
        check_batch(batch, self._scored, configs, self._task)
        self._scored += configs
        self._timings += batch.timings
        return batch

    def finish(self) -> Ranking:
        """Closes the stream and returns the ranking over all batches.

        Scores that were not taken are discarded; ``timings`` and ``reuse`` cover the whole stream.
        """
        self._exchange.done_writing()
        while self.scores() is not None:
            pass
        answer = (next_part(self._exchange, "ranking")).ranking
        Asked(self._scored, self._task, self._top_k).check(answer)
        ranking = Ranking(answer, earlier=self._timings)
        # Reads until the end of the stream, so that the call is not cancelled.
        self._exchange.read()
        return ranking

    def cancel(self) -> None:
        """Cancels the call."""
        self._exchange.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()


def next_part(exchange: Exchange, part: str) -> RankConfigsStreamResponse:
    """Returns the next message. Raises AnswerError if it has another part."""
    answer = exchange.read()
    found = None if answer is None else answer.WhichOneof("part")
    if answer is None or found != part:
        raise AnswerError(f"the stream sent {found or 'its end'}, expected {part}")
    return answer
