"""Offline training of hlorank's cost models: collect, train, export."""
