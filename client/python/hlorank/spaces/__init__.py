"""Flat spaces of parameters, which need neither a graph nor a model."""
