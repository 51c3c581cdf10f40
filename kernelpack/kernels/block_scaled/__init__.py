"""Products of e4m3 by blocks of 128: tokens quantised by groups, weights with a scale a block."""
