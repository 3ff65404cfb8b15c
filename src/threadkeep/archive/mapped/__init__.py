"""Turns in tables that an application already has: names from a mapping, no table or column ever created."""
