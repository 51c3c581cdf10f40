"""Variants on the user's own GPU: held against the oracle, timed, and chosen by their times."""
