"""What a kernel can be built as: YAML → typed values → variants; every mistake by line."""
