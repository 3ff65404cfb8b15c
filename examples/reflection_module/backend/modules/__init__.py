"""Modules that can be switched on and off."""
