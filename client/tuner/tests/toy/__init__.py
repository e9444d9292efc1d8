"""A compiler for tests: it is this folder, and a line of ``hlorank_tune.command``."""
