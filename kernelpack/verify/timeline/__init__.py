"""Timelines for people: a launch on the emulator as a picture, and as a trace for Perfetto."""
