"""The simulated cluster: several hosts on one store, everything that can go wrong, and a ledger that nobody can talk round."""
