"""An S3 server on the loopback interface, so that object stores are tested by their real protocol."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

import boto3
from moto.server import ThreadedMotoServer

_SETTINGS = {
    "AWS_ACCESS_KEY_ID": "tester",
    "AWS_SECRET_ACCESS_KEY": "not-a-secret",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_REGION": "us-east-1",
}
_NUMBERS = itertools.count()
"""No two servers of a process have a bucket of the same name."""


class S3Server:
    """A running server.

    Args:
        endpoint: Its URL.
    """

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint

    def new_bucket(self) -> str:
        """Make a bucket; returns its URI. Clients find the server by the environment."""
        name = f"bucket-{os.getpid()}-{next(_NUMBERS)}"
        boto3.client("s3", endpoint_url=self.endpoint, region_name="us-east-1").create_bucket(Bucket=name)
        return f"s3://{name}"


@contextmanager
def running_s3_server() -> Iterator[S3Server]:
    """Run a server on a free port, and let the AWS clients of this process and its children find it."""
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    settings = {**_SETTINGS, "AWS_ENDPOINT_URL": f"http://{host}:{port}"}
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield S3Server(settings["AWS_ENDPOINT_URL"])
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        server.stop()
