"""Files of a training: checkpoints of models, and the state from which a training goes on."""

import io
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from hlorank_tune.measure.atomic_files import write_atomically
from torch import nn

from hlorank_training.models.architecture import Registry
from hlorank_training.models.kernel_time import KernelTimeModel, KernelTimeSettings


def save_checkpoint(path: Path, model: nn.Module) -> None:
    """Writes the architecture's name, the model's settings and its weights."""
    settings = asdict(model.settings)
    state = model.state_dict()
    _write(path, {"architecture": model.architecture, "settings": settings, "state": state})


def load_checkpoint(path: Path, registry: Registry) -> nn.Module:
    """Reads a checkpoint that ``save_checkpoint`` wrote, of an architecture of the registry or of
    the model of fusions."""
    content = torch.load(path, weights_only=True)
    settings = content["settings"]
    if settings["task"] == "fusion":
        model = KernelTimeModel(KernelTimeSettings(**settings))
    else:
        entry = registry.find(settings["task"], content["architecture"])
        model = entry.model(type(entry.settings)(**settings))
    model.load_state_dict(content["state"])
    return model.eval()


def write_state(path: Path, identity: str, state: dict[str, Any]) -> None:
    """Writes the state of the training with this ``identity``."""
    _write(path, state | {"identity": identity})


def read_state(path: Path, identity: str) -> dict[str, Any]:
    """Reads what ``write_state`` wrote; raises ``RuntimeError`` if it has another identity."""
    state = torch.load(path, weights_only=True)
    if state["identity"] != identity:
        raise RuntimeError(
            f"'{path}' belongs to a training with other settings or graphs; choose another folder, "
            "or delete it to train anew"
        )
    return state


def _write(path: Path, content: dict[str, Any]) -> None:
    written = io.BytesIO()
    torch.save(content, written)
    write_atomically(path, written.getvalue())
