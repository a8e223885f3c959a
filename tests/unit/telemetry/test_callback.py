"""The callback after a commit: what is posted, and that nothing it meets harms the commit."""

from __future__ import annotations

import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.telemetry.callback import call_back, check_callback
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat

METADATA = CommitMetadata(
    {"dt=x": [WriteStat(file_id="f-0", path="dt=x/f.parquet", num_writes=3)]}, {"a": "b"}
)


@pytest.fixture
def receiver():
    """A server that keeps what it is sent; its answer, wait and place to go on to can be set."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.seen.append(
                (self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            )
            time.sleep(server.wait)
            self.send_response(server.answer)
            if server.answer == 302:
                self.send_header("Location", f"http://127.0.0.1:{server.server_port}/elsewhere")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.seen, server.answer, server.wait = [], 200, 0.0
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def options(receiver, **more):
    return resolve_options(
        {
            "hoodie.write.commit.callback.on": "true",
            "hoodie.write.commit.callback.http.url": f"http://127.0.0.1:{receiver.server_port}/hook",
            **more,
        }
    )


def call(chosen):
    call_back(chosen, ("t", "/data/t"), "20260101000000000", "commit", METADATA)


def test_the_message_is_hudis(receiver):
    more = {
        "hoodie.write.commit.callback.http.api.key": "k1",
        "hoodie.write.commit.callback.http.custom.headers": "X-Team:data;X-Env: prod",
    }
    call(options(receiver, **more))

    ((path, headers, body),) = receiver.seen
    told = json.loads(body)
    assert path == "/hook"
    assert (headers["hudi_callback_key"], headers["x-team"], headers["x-env"]) == ("k1", "data", "prod")
    assert (told["commitTime"], told["tableName"], told["basePath"]) == ("20260101000000000", "t", "/data/t")
    assert told["commitActionType"] == "commit" and told["extraMetadata"] == {"a": "b"}
    assert [(stat["fileId"], stat["numWrites"]) for stat in told["hoodieWriteStat"]] == [("f-0", 3)]


@pytest.mark.parametrize("answer", [500, 302])
def test_an_answer_that_is_none_is_a_warning_and_no_redirect_is_followed(receiver, warnings, answer):
    receiver.answer = answer
    call(options(receiver))
    assert "the commit 20260101000000000 of t is complete" in warnings[0]
    assert [path for path, _, _ in receiver.seen] == ["/hook"]


def test_a_receiver_that_does_not_answer_is_left_after_the_time_out(receiver, warnings):
    receiver.wait = 5
    started = time.monotonic()
    call(options(receiver, **{"hoodie.write.commit.callback.http.timeout.seconds": "1"}))
    assert time.monotonic() - started < 4.5
    assert "failed" in warnings[0]


def test_an_answer_that_is_not_of_http_is_a_warning_without_its_text(warnings):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            with server.accept()[0] as asked:
                seen = b""
                while b"extraMetadata" not in seen:
                    seen += asked.recv(65536)
                asked.sendall(b"a-secret line\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}/"
        call(
            resolve_options(
                {
                    "hoodie.write.commit.callback.on": "true",
                    "hoodie.write.commit.callback.http.url": address,
                }
            )
        )
    assert "the callback to 127.0.0.1 failed: BadStatusLine" in warnings[0]
    assert "a-secret" not in warnings[0]


RECEIVED: list[dict] = []


def keep(message):
    RECEIVED.append(message)


class Keeper:
    def __call__(self, message):
        RECEIVED.append(message)


def fail(_):
    raise KeyError("no such queue")


def of_python(name):
    return resolve_options(
        {
            "hoodie.write.commit.callback.on": "true",
            "hoodie.write.commit.callback.class": f"{__name__}:{name}",
        }
    )


@pytest.mark.parametrize("name", ["keep", "Keeper"])
def test_a_python_function_gets_hudis_message(name):
    RECEIVED.clear()
    check_callback(of_python(name))
    call(of_python(name))
    (message,) = RECEIVED
    assert (message["commitTime"], message["tableName"]) == ("20260101000000000", "t")
    assert [stat["numWrites"] for stat in message["hoodieWriteStat"]] == [3]


def test_a_python_function_that_fails_is_a_warning(warnings):
    call(of_python("fail"))
    assert "the commit 20260101000000000 of t is complete" in warnings[0] and "no such queue" in warnings[0]


@pytest.mark.parametrize(
    ("name", "said"),
    [("absent", "cannot be imported"), ("METADATA", "it must be a function"), ("a b", "package.module:name")],
)
def test_a_python_function_is_found_before_anything_is_written(name, said):
    with pytest.raises(ConfigError, match=said):
        check_callback(of_python(name))


def test_a_header_that_cannot_be_sent_is_a_warning_without_its_value(receiver, warnings):
    call(options(receiver, **{"hoodie.write.commit.callback.http.api.key": "a\nsecret"}))
    assert "failed: ValueError" in warnings[0] and "secret" not in warnings[0]


@pytest.mark.parametrize(
    "address",
    [
        "http://user:a-secret@hooks.example.com/",
        "http://user@hooks.example.com/",
        "http://hooks.example.com:a-secret/",
        "http://hooks.example.com:99999/",
        "http://[hooks.example.com/",
        "http://hooks.example.com/a b",
        "http://hooks.example.com/a\nb",
        "http://hooks.example.com/ü",
    ],
)
def test_an_address_that_no_request_can_be_sent_to_is_refused_without_being_told(address):
    given = {
        "hoodie.write.commit.callback.on": "true",
        "hoodie.write.commit.callback.http.url": address,
    }
    with pytest.raises(ConfigError, match="is no address of HTTP") as refused:
        check_callback(resolve_options(given))
    assert "a-secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "is no address of HTTP"),
        ({"hoodie.write.commit.callback.http.url": "file:///etc/passwd"}, "is no address of HTTP"),
        (
            {"hoodie.write.commit.callback.class": "org.apache.hudi.utilities.callback.kafka.K"},
            "only org.apache.hudi",
        ),
        (
            {
                "hoodie.write.commit.callback.http.url": "http://h/",
                "hoodie.write.commit.callback.http.custom.headers": "none",
            },
            "name:value",
        ),
    ],
)
def test_a_callback_that_cannot_be_made_is_refused_before_anything_is_written(given, said):
    with pytest.raises(ConfigError, match=said):
        check_callback(resolve_options({"hoodie.write.commit.callback.on": "true", **given}))
