"""The device check: local models in their real sizes with random weights, on whatever machine there is."""
