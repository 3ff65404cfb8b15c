"""Public helpers for testing against Threadkeep: contract suites, fakes and a fault proxy.

Import the module you need (`threadkeep.testing.fault_proxy`); this file imports nothing, so that none of them
drags in pytest or another backend's driver.
"""
