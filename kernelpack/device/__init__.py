"""Variants on the user's own GPU: checked against the oracle, timed, and chosen by their times."""
