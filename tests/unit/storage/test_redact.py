"""Secrets reach no message."""

from __future__ import annotations

import pytest
from hudi_engine.format.storage.redact import is_secret, redacted, secrets_of, shown_settings


@pytest.mark.parametrize(
    "text",
    [
        "GET https://acme.blob.core.windows.net/lake?comp=list&sig=hidden%2Fvalue failed",
        "url https://b.s3.amazonaws.com/k?X-Amz-Credential=hidden&X-Amz-Signature=hidden",
        "Authorization: hidden",
        "AccountName=a;AccountKey=hidden;",
        "s3://user:hidden@bucket/t",
        "the key is hidden",
    ],
)
def test_a_message_keeps_all_but_the_secret(text: str) -> None:
    told = redacted(text, ["hidden"] if text.startswith("the key") else [])

    assert "hidden" not in told and "***" in told


def test_settings_are_known_by_name_to_be_secret() -> None:
    settings = {
        "region": "us-east-1",
        "secret_access_key": "abcdef",
        "endpoint": "http://x",
        "sas_key": "ghijkl",
    }

    assert secrets_of(settings) == ("abcdef", "ghijkl")
    assert not is_secret("endpoint")


def test_a_record_key_is_no_secret_and_a_key_of_an_account_is() -> None:
    options = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.aws.access.key": "hidden",
        "hoodie.metrics.datadog.api.key": "hidden",
        "hoodie.metrics.pushgateway.url": "hidden",
        "hoodie.write.tokens": "true",
    }

    assert shown_settings(options) == {
        **options,
        "hoodie.aws.access.key": "***",
        "hoodie.metrics.datadog.api.key": "***",
        "hoodie.metrics.pushgateway.url": "***",
    }
