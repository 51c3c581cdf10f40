"""Doors of frameworks: kernelpack's ops under the names, and by the rules, of torch and TVM's FFI.

Nothing is registered until a door's `register` is called; no framework is imported before that.
"""
