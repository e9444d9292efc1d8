"""What several tests need."""

from shared_fixtures import client_tests, hlorank

__all__ = ["client_tests", "hlorank"]
