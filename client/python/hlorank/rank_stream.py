"""A stream of the blocking client."""

from types import TracebackType
from typing import Self

from hlorank.blocking import run_to_end
from hlorank.configurations import Configurations
from hlorank.model import ModelReference
from hlorank.ranking import BatchScores, Ranking
from hlorank.stream_session import StreamSession


class RankStream:
    """A stream of batches to a server, and of their scores back.

    Take scores while you send: apart from what is in transit, the server reads a batch only after
    the scores of the previous one were taken, and ``send`` then blocks.
    Only one thread or task may use a stream at a time. Leaving its ``with`` block before ``finish``
    cancels the call.
    """

    def __init__(self, stream: StreamSession):
        self._stream = stream

    @property
    def model(self) -> ModelReference | None:
        """The model version that scores; None if none does, but measurements alone."""
        return self._stream.model

    def send(self, configurations: Configurations) -> None:
        """Sends a batch, after the previous one has been sent."""
        run_to_end(self._stream.send(configurations))

    def scores(self) -> BatchScores | None:
        """Waits for the scores of the earliest batch whose scores were not taken yet.

        Returns None if the scores of every batch were taken.
        """
        return run_to_end(self._stream.scores())

    def finish(self) -> Ranking:
        """Closes the stream and returns the ranking over all batches.

        Scores that were not taken are discarded; ``timings`` and ``reuse`` cover the whole stream.
        """
        return run_to_end(self._stream.finish())

    def cancel(self) -> None:
        """Cancels the call."""
        self._stream.exchange.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cancel()
