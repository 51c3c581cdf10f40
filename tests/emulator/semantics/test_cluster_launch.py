"""The answer of try_cancel, whose words public kernels read without `query_cancel`."""

import numpy as np

from kernelpack.emulator.semantics import cluster_launch


def test_words_of_an_answer():
    """x; y and z in 16 bits each; bit 0 of the third word: what ptxas decodes."""
    words = cluster_launch.answer((70000, 5, 7)).view(np.uint32)
    assert words.tolist() == [70000, 5 | 7 << 16, 1, 0]


def test_no_cluster_left():
    """Then bit 0 of the third word is not set."""
    assert cluster_launch.answer(None).view(np.uint32).tolist() == [0, 0, 0, 0]
