#!/usr/bin/python3
"""An HTTPS server that speaks HTTP/1.1 alone, for test_http_client_tls.c.

usage: tls_http1.py DIR N

Writes DIR/http1.pem (certificate and key, its own authority), prints its port,
and answers no request before N have come at the same time. Ends with its
standard input."""

import http.server
import sys
import threading

import tls_context


def main():
    pem, together = sys.argv[1] + "/http1.pem", threading.Barrier(int(sys.argv[2]))

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            together.wait()
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.request_queue_size = 128
    # The handshake belongs to the thread of the connection, not to accept.
    server.socket = tls_context.context(pem, "http/1.1").wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
