"""Schedules: when runs start by themselves."""
