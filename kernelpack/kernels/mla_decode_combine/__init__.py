"""Partial outputs of the decode attention, of splits of its keys, become one."""
