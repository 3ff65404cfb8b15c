"""The cases of `threadkeep.testing.hot_contract`, by subject."""
