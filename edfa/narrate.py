"""Placeholder of the sentences; the real module replaces it."""

from edfa.certification.certificate import Certificate

__all__ = ["certificate"]


def certificate(certificate: Certificate, language: str = "en") -> str:
    """The guarantee in words, or nothing."""
    return certificate.sentence if certificate.certified else ""
