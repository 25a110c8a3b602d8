"""Tools of agents: how they are offered, and what a model and the loop know of them."""
