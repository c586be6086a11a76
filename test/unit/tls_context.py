"""A TLS context of a test server: a certificate of its own, which is its own authority."""

import ssl
import subprocess


def context(pem, protocol):
    """Writes `pem` (certificate and key)."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=test",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", pem, "-out", pem + ".crt"],
                   check=True, stderr=subprocess.DEVNULL)
    with open(pem + ".crt") as crt, open(pem, "a") as out:
        out.write(crt.read())
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(pem)
    made.set_alpn_protocols([protocol])
    return made
