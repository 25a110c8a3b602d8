"""Questions for people: links that answer them, and notifications about them."""
