"""The simulated cluster: several hosts on one store, and everything that can go wrong.

A ledger that nobody can talk round says what really happened.
"""
