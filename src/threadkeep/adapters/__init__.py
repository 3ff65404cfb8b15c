"""Threadkeep behind the interfaces of agent frameworks."""
