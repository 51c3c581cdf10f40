"""NVFP4 tokens times NVFP4 weights of their group's expert."""
