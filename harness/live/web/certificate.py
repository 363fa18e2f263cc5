"""A self-signed certificate for the page beyond this machine. Kept in memory; its key is on disk for a moment."""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import os
import ssl
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = datetime.timedelta(days=2)


class Certificate:
    """For the addresses and names in `hosts`. context: of the server. fingerprint: what a browser shows as SHA-256."""

    def __init__(self, hosts: Sequence[str]) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "firstpacket live")])
        now = datetime.datetime.now(datetime.UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            # Valid from a little earlier: clocks of two machines differ.
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + LIFETIME)
            .add_extension(x509.SubjectAlternativeName([_name(host) for host in hosts]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .sign(key, hashes.SHA256())
        )
        digest = hashlib.sha256(certificate.public_bytes(serialization.Encoding.DER)).hexdigest().upper()
        self.fingerprint = ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        _load(self.context, private + certificate.public_bytes(serialization.Encoding.PEM))


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _load(context: ssl.SSLContext, pem: bytes) -> None:
    """OpenSSL takes a file only; this one is readable by its owner alone."""
    handle, name = tempfile.mkstemp(prefix="firstpacket-", suffix=".pem")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(pem)
        context.load_cert_chain(name)
    finally:
        Path(name).unlink()
