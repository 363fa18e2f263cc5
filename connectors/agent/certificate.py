"""A throw-away certificate authority and a server certificate from it, for TLS on the loopback."""

from __future__ import annotations

import datetime
import ipaddress
import os
import ssl
import tempfile
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = datetime.timedelta(days=2)


class Certificate:
    """Makes the pair; `ca` is the PEM file that a client must trust, there until `remove`."""

    def __init__(self, host: str) -> None:
        ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "firstpacket agent CA")])
        ca = _builder(ca_name, ca_name, ca_key.public_key())
        ca = ca.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        ca = ca.add_extension(_usage(signs_certificates=True), critical=True)
        identifier = x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key())
        ca_certificate = ca.add_extension(identifier, critical=False).sign(ca_key, hashes.SHA256())
        leaf_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "firstpacket agent")])
        leaf = _builder(leaf_name, ca_name, key.public_key())
        leaf = leaf.add_extension(x509.SubjectAlternativeName(_names(host)), critical=False)
        leaf = leaf.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        leaf = leaf.add_extension(_usage(signs_certificates=False), critical=True)
        leaf = leaf.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
        certificate = leaf.add_extension(authority, critical=False).sign(ca_key, hashes.SHA256())
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        self.ca = _write(ca_certificate.public_bytes(serialization.Encoding.PEM))
        pair = _write(private + certificate.public_bytes(serialization.Encoding.PEM))
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            self.context.load_cert_chain(pair)
        finally:
            pair.unlink()

    def remove(self) -> None:
        """Delete the CA file."""
        self.ca.unlink(missing_ok=True)


def _builder(subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        # Valid from a little earlier: clocks of two machines differ.
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + LIFETIME)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _names(host: str) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = [x509.DNSName("localhost")]
    addresses = {"127.0.0.1", "::1"}
    try:
        addresses.add(str(ipaddress.ip_address(host)))
    except ValueError:
        if host != "localhost":
            names.append(x509.DNSName(host))
    return names + [x509.IPAddress(ipaddress.ip_address(address)) for address in sorted(addresses)]


def _write(pem: bytes) -> Path:
    handle, name = tempfile.mkstemp(prefix="firstpacket-", suffix=".pem")
    with os.fdopen(handle, "wb") as file:
        file.write(pem)
    return Path(name)
