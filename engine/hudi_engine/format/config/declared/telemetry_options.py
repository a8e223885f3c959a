"""Options of metrics and of the commit callback (see `hudi_engine.format.config.options`)."""

from __future__ import annotations

from hudi_engine.format.config.enums import MetricsReporter
from hudi_engine.format.config.option import bool_option, choice_option, int_option, text_option

TELEMETRY = "Metrics and callback"


class TelemetryOptions:
    """Metrics of commits, and who is notified of them."""

    GROUP = TELEMETRY

    METRICS = bool_option(
        "hoodie.metrics.on",
        False,
        "Metrics of each commit and service are written, under Hudi's names, to the files and the receiver that the options "
        "below name.",
    )
    REPORTER = choice_option(
        "hoodie.metrics.reporter.type",
        MetricsReporter.INMEMORY,
        MetricsReporter,
        "Receiver of metrics besides files: a push gateway, or an agent of Datadog or statsd (UDP). PROMETHEUS is the text file; "
        "INMEMORY has no receiver.",
    )
    METRICS_PREFIX = text_option(
        "hoodie.metrics.reporter.metricsname.prefix",
        None,
        "What the names of metrics begin with. Not set: the table's name.",
    )
    TEXTFILE_FOLDER = text_option(
        "hoodie.engine.metrics.textfile.dir",
        None,
        "Local folder for a Prometheus text file a table, as the node exporter's textfile collector reads it.",
    )
    JSON_FILE = text_option(
        "hoodie.engine.metrics.json.file",
        None,
        "Local file to which each commit and service appends a line of JSON: time, table and metrics.",
    )
    GATEWAY_HOST = text_option("hoodie.metrics.pushgateway.host", "localhost", "Host of the push gateway.")
    GATEWAY_PORT = int_option(
        "hoodie.metrics.pushgateway.port", 9091, "Its port; HTTP without encryption.", minimum=1
    )
    GATEWAY_JOB = text_option(
        "hoodie.metrics.pushgateway.job.name",
        None,
        "Job of the pushed metrics. Not set: what their names begin with.",
    )
    GATEWAY_LABELS = text_option(
        "hoodie.metrics.pushgateway.report.labels",
        None,
        "Further labels of the group: name:value,name:value.",
    )
    STATSD_HOST = text_option(
        "hoodie.engine.metrics.statsd.host", "localhost", "Host of the agent (DATADOG)."
    )
    STATSD_PORT = int_option("hoodie.engine.metrics.statsd.port", 8125, "Its UDP port.", minimum=1)
    STATSD_PREFIX = text_option(
        "hoodie.metrics.datadog.metric.prefix",
        None,
        "What the names of metrics sent to it begin with. Not set: as those of the others.",
    )
    STATSD_TAGS = text_option(
        "hoodie.metrics.datadog.metric.tags", None, "Tags of those metrics: name:value,name:value."
    )
    CALLBACK = bool_option(
        "hoodie.write.commit.callback.on",
        False,
        "Each commit is sent to hoodie.write.commit.callback.http.url, or to a Python function; a failure is a warning.",
    )
    CALLBACK_CLASS = text_option(
        "hoodie.write.commit.callback.class",
        "org.apache.hudi.callback.impl.HoodieWriteCommitHttpCallback",
        "Hudi's callback over HTTP, or a Python function as package.module:name, which is called with the same message as a "
        "dictionary. A dbt model cannot set it, a profile can.",
    )
    CALLBACK_URL = text_option(
        "hoodie.write.commit.callback.http.url",
        None,
        "Where the message is posted to as JSON; redirects are not followed. A dbt model cannot set it, a profile can.",
    )
    CALLBACK_API_KEY = text_option(
        "hoodie.write.commit.callback.http.api.key",
        "hudi_write_commit_http_callback",
        "Sent as header HUDI_CALLBACK_KEY.",
    )
    CALLBACK_HEADERS = text_option(
        "hoodie.write.commit.callback.http.custom.headers", None, "Further headers: name:value;name:value."
    )
    CALLBACK_TIMEOUT = int_option(
        "hoodie.write.commit.callback.http.timeout.seconds", 3, "How long a callback may take.", minimum=1
    )
