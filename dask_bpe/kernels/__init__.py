"""The loops over bytes, compiled by numba: the only place that knows it. Arrays in, arrays out.

Import the module that is needed: each one compiles (or loads from the cache) its own kernels.
"""
