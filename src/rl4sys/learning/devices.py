"""The choice of a torch device."""

from __future__ import annotations

import logging
import re

import torch

_log = logging.getLogger(__name__)


class DeviceUnavailable(RuntimeError):
    """The requested device is not available."""


def choose_device(wanted: str, *, allow_fallback: bool = False) -> torch.device:
    """The device to compute on; `auto` takes a GPU if there is one."""
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if wanted == "auto":
        return torch.device("cuda" if gpus else "cpu")
    if not re.fullmatch(r"cpu|cuda(:\d+)?", wanted):
        raise DeviceUnavailable(
            f"device: '{wanted}' is not a device that RL4Sys supports; use auto, cpu, cuda or cuda:1."
        )
    device = torch.device(wanted)
    if device.type == "cpu" or (device.index or 0) < gpus:
        return device
    seen = f"only {gpus} CUDA GPU(s)" if gpus else "no CUDA GPU"
    if not allow_fallback:
        raise DeviceUnavailable(
            f"device: '{wanted}' was requested, but torch finds {seen} here. "
            f"Use device=auto (or --allow-fallback), or install a CUDA build of torch."
        )
    instead = choose_device("auto")
    _log.warning("device: torch finds %s here: computing on '%s' instead of '%s'.", seen, instead, wanted)
    return instead
