"""LoRA shrink of stacked Q, K and V adapters into three planes."""
