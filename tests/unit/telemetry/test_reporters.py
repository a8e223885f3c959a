"""Where metrics go beside the text file for Prometheus."""

from __future__ import annotations

import json
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml
from hudi_engine.errors import ConfigError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.telemetry.callback import check_callback
from hudi_engine.format.telemetry.reporters import report

VALUES = {"commit.duration": 2000, "commit.totalRecordsWritten": 7}


def options(**given):
    names = {f"hoodie.{name.replace('__', '.')}": str(value) for name, value in given.items()}
    return resolve_options({"hoodie.metrics.on": "true", **names})


def test_each_report_is_a_line_of_json(tmp_path):
    chosen = options(engine__metrics__json__file=tmp_path / "logs" / "hudi.jsonl")
    report(chosen, "orders", VALUES)
    report(chosen, "orders", {"clean.numFilesDeleted": 3})

    lines = [json.loads(line) for line in (tmp_path / "logs" / "hudi.jsonl").read_text().splitlines()]
    assert [(line["table"], line["metrics"]) for line in lines] == [
        ("orders", VALUES),
        ("orders", {"clean.numFilesDeleted": 3}),
    ]
    assert all(line["time"].endswith("+00:00") for line in lines)


@pytest.fixture
def gateway():
    """A push gateway that keeps what it is sent."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.seen.append((self.path, self.headers["Content-Type"], body.decode()))
            self.send_response(server.answer)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.seen, server.answer = [], 200
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def pushed(gateway, **more):
    return options(
        metrics__reporter__type="PROMETHEUS_PUSHGATEWAY",
        metrics__pushgateway__host="127.0.0.1",
        metrics__pushgateway__port=gateway.server_port,
        **more,
    )


def test_a_push_gateway_gets_the_gauges_of_the_tables_job(gateway):
    report(pushed(gateway, metrics__pushgateway__report__labels="env:prod, team:a/b"), "shop.orders", VALUES)

    ((path, kind, body),) = gateway.seen
    assert path == "/metrics/job/shop.orders/env/prod/team/a%2Fb"
    assert kind.startswith("text/plain")
    assert "# TYPE shop_orders_commit_duration gauge\nshop_orders_commit_duration 2000\n" in body


def test_the_job_of_pushed_metrics_can_be_named(gateway):
    chosen = {"hoodie.metrics.pushgateway.job.name": "nightly"}
    report(pushed(gateway).merged(chosen), "orders", VALUES)
    assert gateway.seen[0][0] == "/metrics/job/nightly"


def test_a_push_gateway_that_refuses_is_a_warning(gateway, warnings):
    gateway.answer = 400
    report(pushed(gateway), "orders", VALUES)
    assert "the metrics of orders could not be written to the push gateway" in warnings[0]


def test_an_agent_gets_gauges_with_tags_in_datagrams():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as agent:
        agent.bind(("127.0.0.1", 0))
        agent.settimeout(5)
        chosen = options(
            metrics__reporter__type="DATADOG",
            engine__metrics__statsd__host="127.0.0.1",
            engine__metrics__statsd__port=agent.getsockname()[1],
            metrics__datadog__metric__prefix="hudi",
            metrics__datadog__metric__tags="env:prod,table:orders",
        )
        report(chosen, "orders", VALUES)
        assert agent.recv(2000).decode().splitlines() == [
            "hudi.commit.duration:2000|g|#env:prod,table:orders",
            "hudi.commit.totalRecordsWritten:7|g|#env:prod,table:orders",
        ]
        report(chosen, "orders", {f"commit.{'x' * 60}{n}": n for n in range(40)})
        found = [agent.recv(2000) for _ in range(3)]
        assert all(len(datagram) <= 1432 for datagram in found)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"metrics__reporter__type": "PROMETHEUS"}, "textfile.dir is not set"),
        (
            {
                "metrics__reporter__type": "PROMETHEUS_PUSHGATEWAY",
                "metrics__pushgateway__host": "http://u:p@gateway",
            },
            "is no name of a host",
        ),
        ({"metrics__reporter__type": "GRAPHITE"}, "legal values: INMEMORY, PROMETHEUS"),
    ],
)
def test_metrics_that_cannot_be_sent_are_refused_before_a_write(given, said):
    with pytest.raises(ConfigError, match=said):
        check_callback(options(**given))


def test_the_options_of_the_page_are_legal():
    page = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text("utf-8")
    shown = re.findall(r"```yaml\n(# profiles\.yml.*?)```", page, re.DOTALL)
    assert len(shown) == 2
    for text in shown:
        check_callback(resolve_options(yaml.safe_load(text)["options"]))
