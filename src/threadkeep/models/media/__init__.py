"""Recordings and pictures into words: offline, or by a hosted model that hears and sees."""
