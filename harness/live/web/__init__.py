"""A live session through a browser: a local page whose microphone and loudspeaker are the session's, over WebRTC."""
