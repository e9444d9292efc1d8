"""The floor for a model of kernels: boosted trees on sums over nodes."""

import numpy as np
from hlorank_tune.measure.schema import ModuleTuningData
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from hlorank_research.comparisons.kernel_sums import KernelSums, kernel_sums
from hlorank_training.data.kernels import KernelData
from hlorank_training.measuring.kernel_times import ProgramKernels


class KernelTrees:
    """Boosted trees that learn the factor between run times and rough estimates of them, since
    trees cannot extrapolate run times."""

    def __init__(self, data: KernelData):
        self._nanoseconds = data.nanoseconds()
        by_digest = _sums(data)
        sums = [by_digest[kernel.digest] for kernel in data.kernels]
        self._features = np.array([one.features for one in sums])
        self._estimates = np.array([one.estimate for one in sums])

    def predict(self, seen: np.ndarray) -> np.ndarray:
        """Returns nanoseconds of every kernel by trees that saw some: f64 [k]."""
        target = np.log(self._nanoseconds[seen] / self._estimates[seen])
        trees = HistGradientBoostingRegressor(max_iter=150, l2_regularization=1.0, random_state=1)
        # Several threads spin while they wait for each other, for minutes on a busy machine.
        with threadpool_limits(1):
            trees.fit(self._features[seen], target)
            return np.exp(trees.predict(self._features)) * self._estimates


def _sums(data: KernelData) -> dict[str, KernelSums]:
    """Returns the sums of every kernel by its digest."""
    found: dict[str, KernelSums] = {}
    for program in data.programs:
        kernels = ProgramKernels(ModuleTuningData.FromString(program.file.read_bytes()))
        for identity, module in kernels.modules.items():
            if identity not in found:
                found[identity] = kernel_sums(module)
    return found
