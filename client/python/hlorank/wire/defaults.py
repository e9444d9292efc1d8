"""Defaults and limits of calls; the Rust client's test and the pages compare theirs with these."""

TIMEOUT = 30.0
"""Seconds until the deadline of a call, retries included."""
CONNECT_TIMEOUT = 10.0
"""Maximum seconds of one attempt to connect."""
PATIENCE = 30.0
"""Seconds of retries after the first failure of a call without a deadline."""
FIRST_PAUSE = 0.1
"""Seconds before the first retry if the server is unavailable; each further pause doubles."""
LONGEST_PAUSE = 1.0
"""Maximum seconds of a pause that the server did not ask for."""
MESSAGE_BYTES = 64 << 20
"""Maximum length of a message in either direction."""

ADAPTER_TIMEOUT = 1.9
"""Seconds of a call of an adapter that a compilation waits for, at most 2 s with all around it: its
host can do without."""
AWAY_PAUSE = 60.0
"""Seconds without calls after the server was away, so that a tuner does not wait for each."""

LEASE = 60.0
"""Seconds until a lease or a claim expires that is not renewed."""

LEARNED = 2_000
"""Maximum number of measurements that a call learns from."""
REPORTED = 10_000
"""Maximum number of measurements of a report."""
PENDING = 256
"""Maximum number of pending configurations of a call."""
SUGGESTED = 64
"""Maximum number of suggestions of a call."""
TARGET_BYTES = 256
"""Maximum length of a target, and of an instance."""
NAME_CHARACTERS = 128
"""Maximum length of the name of a feature set."""
