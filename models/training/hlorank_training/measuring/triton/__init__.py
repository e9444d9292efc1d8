"""Measures tiles of Triton kernels on a GPU."""
