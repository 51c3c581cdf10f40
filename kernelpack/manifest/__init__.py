"""A kernel's manifest: YAML → typed values → variants; every mistake by line."""
