"""What the tests need on a fresh machine: system packages (`system.sh`) and model weights (`models.py`)."""
