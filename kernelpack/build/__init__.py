"""From manifests to a bundle: the order of the steps, what each output depends on, and workers."""
