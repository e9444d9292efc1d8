"""A stream of batches, shared by the sync and the async client."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from hlorank.arguments import instance
from hlorank.asked import Asked, check_batch
from hlorank.batch import Batch
from hlorank.configurations import Configurations
from hlorank.errors import AnswerError, BatchTooLongError
from hlorank.messages import ConfigBatch, RankConfigsStreamRequest
from hlorank.model import ModelReference
from hlorank.ranking import BatchScores, Ranking, Timings, batch_scores_of
from hlorank.task import Task
from hlorank.transport import Exchange


@dataclass
class StreamSession:
    """A stream of batches to a server, and of their scores back."""

    exchange: Exchange
    message_bytes: int
    task: Task
    top_k: int
    """Maximum length of the ranking; 0 for all."""
    model: ModelReference | None
    timings: Timings
    """The sum so far."""
    started: Any
    """The ``RankConfigsStarted`` message"""
    unscored: deque[int] = field(default_factory=deque)
    """Number of configurations of each sent batch whose scores were not taken yet."""
    scored: int = 0
    """Number of configurations whose scores were taken."""

    async def send(self, configurations: Configurations) -> None:
        """Sends a batch."""
        instance(configurations, Batch, "configurations", "Layouts, Tiles, Fusions or others")
        form, batch = configurations.wire
        request = RankConfigsStreamRequest(batch=ConfigBatch(**{form: batch}))
        message = request.SerializeToString()
        if len(message) > self.message_bytes:
            raise BatchTooLongError(len(message), self.message_bytes)
        # Before the write, since the scores may arrive while it returns.
        self.unscored.append(len(configurations))
        written = False
        try:
            written = await self.exchange.write(message)
        finally:
            if not written:
                self.unscored.pop()
        if not written:
            await self._raise_refusal()

    async def scores(self) -> BatchScores | None:
        """Takes the scores of the earliest batch whose scores were not taken yet."""
        if not self.unscored:
            return None
        batch = batch_scores_of(await next_part(self.exchange, "scores"))
        configs = self.unscored.popleft()
        check_batch(batch, self.scored, configs, self.task)
        self.scored += configs
        self.timings += batch.timings
        return batch

    async def finish(self) -> Ranking:
        """Closes the stream and returns the ranking."""
        await self.exchange.done_writing()
        while await self.scores() is not None:
            pass
        answer = await next_part(self.exchange, "ranking")
        ranking = Ranking(answer, answer.reuse.configs, earlier=self.timings, started=self.started)
        Asked(self.scored, self.task, self.top_k).check(ranking)
        # Reads until the end of the stream, so that the call is not cancelled.
        await self.exchange.read()
        return ranking

    async def _raise_refusal(self) -> None:
        """Raises the status with which the server ended the stream."""
        while await self.exchange.read() is not None:
            pass
        raise AnswerError("the server ended the stream early")


async def next_part(exchange: Exchange, part: str) -> Any:
    """Returns the next message's part. Raises AnswerError if it is another one."""
    answer = await exchange.read()
    found = None if answer is None else answer.WhichOneof("part")
    if found != part:
        raise AnswerError(f"the stream sent {found or 'its end'}, expected {part}")
    return getattr(answer, part)
