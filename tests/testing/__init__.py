"""The test kit that users get, tested."""
