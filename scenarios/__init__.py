"""What is said: spoken clips with sample-accurate marks, query packs and their readers."""
