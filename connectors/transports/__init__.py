"""Bytes over sockets and pipes, stamped at once; no protocol is parsed here."""
