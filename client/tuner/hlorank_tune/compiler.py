"""What a compiler provides so that programs are tuned for it.

A compiler is a folder with a subclass of ``Compiler``, and a module ``command`` that makes one of
the arguments of the command line; ``hlorank_tune.command`` names that module in one line.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from hlorank_tune.measure import rounds
from hlorank_tune.run import Measurement, Run
from hlorank_tune.server import Predictor
from hlorank_tune.subject import Outcome, Settings, Subject

C = TypeVar("C")

Report = Callable[[str], None]
"""Called with a description of the phase after every change."""


class Compiler(ABC, Generic[C]):
    """A compiler with the program that is tuned for it; a context that ends its processes."""

    task: ClassVar[str]
    """What is chosen, such as ``layout``."""
    settings: ClassVar[Settings] = Settings()
    """The settings of a search that states none."""
    model: ClassVar[str | None] = None
    """The model that ranks by default; None for the server's default of the task."""
    reference: ClassVar[str] = "your program"
    """What the user calls the reference."""
    default_name: ClassVar[str] = "the default takes"
    """The compiler's choice and its verb, as the beginning of a sentence about its time."""
    parts: ClassVar[int] = 3
    """Parts of the confirmation; 0 if the winner is the fastest of the search."""
    search: ClassVar[rounds.Protocol]
    """Protocol of the measurements during a search."""
    confirm: ClassVar[rounds.Protocol]
    """Protocol of the measurements that choose the winner."""

    program: str
    """Name of the program."""
    whole: Subject[Any]
    """The program itself; the winner is one of its candidates."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Ends the compiler's processes."""

    def open(self, folder: Path) -> None:
        """Called once before anything else, with the folder of the results."""

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Returns what distinguishes this search from others: JSON, with a digest ``identity``."""

    def version(self) -> str:
        """Returns the compiler with the version that what is found belongs to."""
        return ""

    @abstractmethod
    def target(self) -> str:
        """Names the hardware, the compiler with its version, and the flags."""

    def subjects(self, report: Report) -> Sequence[Subject[C]]:
        """Returns what is tuned; by default the program itself."""
        return [self.whole]

    def left_alone(self) -> Mapping[str, str]:
        """Returns what is not tuned, or failed before it was a candidate, with the reason."""
        return {}

    def counts(self, measurement: Measurement) -> bool:
        """Returns whether a measurement is one of those that ``Settings.measurements`` limits."""
        return True

    @abstractmethod
    def measure(
        self,
        subject: Subject[C],
        candidates: Sequence[C],
        protocol: rounds.Protocol,
        seconds: float,
        report: Report,
    ) -> list[Outcome]:
        """Compiles, checks and measures candidates beside the reference, in about ``seconds``.

        Raises:
            HlorankError: if the reference itself does not run.
        """

    def combined(self, run: Run, report: Report) -> Sequence[Any]:
        """Returns the reference and the candidates of ``whole`` that the subjects' best make up.

        They are measured after the search. Nothing by default, where ``whole`` is the subject.
        """
        return ()

    def reason(self) -> str:
        """Says why nothing is faster; empty if there is nothing to say beside the times."""
        return ""

    def explained(
        self, run: Run, guide: Callable[[Subject[Any]], Predictor[Any]]
    ) -> dict[str, Any] | None:
        """Returns what a model says of the winner, as a row of the journal; None for nothing."""
        return None

    @abstractmethod
    def write(self, run: Run, folder: Path) -> None:
        """Writes the result of a search that is complete, if something is faster."""

    def use(self, run: Run, folder: Path) -> str:
        """Says in a line how to use the result; empty if there is none."""
        return ""
