"""The content-addressed store that builds and verifications share, and where it lies."""
