"""The embedded voice agent: a real server with a truth log. No client imports it."""
