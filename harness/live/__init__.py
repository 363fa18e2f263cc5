"""Live sessions: a person speaks with a peer while it is measured. Sound cards, the terminal and the web page."""
