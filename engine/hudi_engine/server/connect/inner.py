"""The way to Spark's own service, which listens on the loopback interface for who knows its token."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.connect import proto

from hudi_engine.errors import ConfigError
from hudi_engine.spark.jvm.connect import connect_service

SERVICE = "/spark.connect.SparkConnectService/"
UNBOUNDED = (("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1))


class Inner:
    """Calls of Spark's service, bytes in and bytes out.

    Args:
        spark: A session of the Java that the service runs in.
    """

    def __init__(self, spark: SparkSession) -> None:
        service = connect_service(spark)
        self._channel = grpc.insecure_channel(
            f"127.0.0.1:{service.port}", options=(*UNBOUNDED, ("grpc.enable_http_proxy", 0))
        )
        self._token = (("authorization", f"Bearer {service.token}"),)
        self._check_guarded()

    def _check_guarded(self) -> None:
        """Raise ConfigError for a Spark that would answer other users of the machine too."""
        try:
            self._channel.unary_unary(f"{SERVICE}Config")(b"")
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.UNAUTHENTICATED:
                return
        raise ConfigError(
            f"the Spark Connect of PySpark {pyspark.__version__} asks for no token, so that other users of this machine "
            "could go round the server: update PySpark, or leave --connect-port out"
        )

    def unary(self, method: str, request: bytes) -> bytes:
        """Call a method with one answer; grpc.RpcError as the service has it."""
        answer: bytes = self._channel.unary_unary(f"{SERVICE}{method}")(request, metadata=self._token)
        return answer

    def from_stream(self, method: str, requests: Iterator[bytes]) -> bytes:
        """Call a method that takes several messages."""
        answer: bytes = self._channel.stream_unary(f"{SERVICE}{method}")(requests, metadata=self._token)
        return answer

    def stream(self, method: str, request: bytes) -> Any:
        """Call a method with several answers; what it returns is iterated over, and has ``cancel``."""
        return self._channel.unary_stream(f"{SERVICE}{method}")(request, metadata=self._token)

    def run(self, request: proto.ExecutePlanRequest, command: proto.Command) -> None:
        """Run a command in the session of a request, to its end."""
        own = proto.ExecutePlanRequest(
            session_id=request.session_id, user_context=request.user_context, client_type=request.client_type
        )
        own.plan.command.CopyFrom(command)
        for _ in self.stream("ExecutePlan", own.SerializeToString()):
            pass

    def close(self) -> None:
        """Hang up."""
        self._channel.close()
