"""Many hosts on one Postgres: real processes, killed, frozen and cut off from their database."""
