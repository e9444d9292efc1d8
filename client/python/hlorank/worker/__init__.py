"""Searches that several workers share, and decisions that all of them take."""

from hlorank.worker.worker import Worker

__all__ = ["Worker"]
