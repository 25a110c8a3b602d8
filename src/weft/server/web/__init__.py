"""The files of the web UI, and the headers that they are sent with."""
