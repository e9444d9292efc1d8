"""Files of trained models of kernels."""

import io
from dataclasses import asdict
from pathlib import Path

import torch
from hlorank_tune.measure.atomic_files import write_atomically

from hlorank_training.models.kernel_time import KernelTimeModel, KernelTimeSettings


def save_weights(path: Path, model: KernelTimeModel) -> None:
    """Writes the settings and the weights."""
    written = io.BytesIO()
    torch.save({"settings": asdict(model.settings), "state": model.state_dict()}, written)
    write_atomically(path, written.getvalue())


def load_weights(path: Path) -> KernelTimeModel:
    """Reads what ``save_weights`` wrote."""
    content = torch.load(path, weights_only=True)
    model = KernelTimeModel(KernelTimeSettings(**content["settings"]))
    model.load_state_dict(content["state"])
    return model.eval()
