"""Wire protocols, sans-IO: bytes to events and commands to bytes, client and server side."""
