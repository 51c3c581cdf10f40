"""Shared by the grouped GEMMs of NVFP4 weights: problems, cases, packed inputs, the oracle.

    c[i, :] = expert_scales[x] * (a[i, :] · weights[x]ᵀ)   for each row i of a group of expert x

A weight is a 4-bit code (e2m1) times the scale (e4m3) of its 16 elements along K.
"""
