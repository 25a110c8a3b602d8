"""Pictures that tests draw."""
