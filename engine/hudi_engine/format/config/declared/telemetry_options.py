"""Options of metrics and of the commit callback (see `hudi_engine.format.config.options`)."""

from __future__ import annotations

from hudi_engine.format.config.option import bool_option, int_option, text_option

TELEMETRY = "Metrics and callback"


class TelemetryOptions:
    """Metrics of commits, and who is notified of them."""

    GROUP = TELEMETRY

    METRICS = bool_option(
        "hoodie.metrics.on",
        False,
        "Metrics of each commit are written, under Hudi's names, to hoodie.engine.metrics.textfile.dir.",
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
    CALLBACK = bool_option(
        "hoodie.write.commit.callback.on",
        False,
        "Each commit is sent to hoodie.write.commit.callback.http.url; a failure is a warning.",
    )
    CALLBACK_CLASS = text_option(
        "hoodie.write.commit.callback.class",
        "org.apache.hudi.callback.impl.HoodieWriteCommitHttpCallback",
        "The class that sends it; only Hudi's callback over HTTP works here.",
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
