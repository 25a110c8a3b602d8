"""The endpoints of the API. An endpoint takes a call and returns a struct; it does not deal with HTTP."""
