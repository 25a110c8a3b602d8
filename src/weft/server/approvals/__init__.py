"""People in the loop: an inbox, decisions, links that decide, and telling others that somebody is asked."""
