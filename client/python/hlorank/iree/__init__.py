"""IREE's CPU backend as a compiler to tune: its dispatches, their tiles, and tuning specs.

Needs ``pip install 'hlorank[iree]'``. A *dispatch* is a kernel that IREE forms of a program. Its
*root* is the operation whose ``lowering_config`` decides how the dispatch is tiled.
"""
