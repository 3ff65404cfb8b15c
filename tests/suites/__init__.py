"""The agent frameworks' own tests, pointed at our adapters. They stay where their authors keep them.

`python -m tests.suites FOLDER` runs those whose source lies in that folder (CONTRIBUTING.md).
"""
