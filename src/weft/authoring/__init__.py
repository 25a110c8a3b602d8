"""The API that users write with: apps, steps, workflows, and the context inside them."""
