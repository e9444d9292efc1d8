"""Answers of a server, checked and converted to NumPy arrays and data classes."""
