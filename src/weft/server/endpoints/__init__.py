"""What each route does. An endpoint takes a call and gives a struct; it knows nothing of HTTP."""
