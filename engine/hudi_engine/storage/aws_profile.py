"""Keys and region of the AWS tools' shared files, which the client of the S3 protocol does not read itself."""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pyarrow import fs

from hudi_engine.errors import StorageError

_KEYS = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
    "region": "region",
}
# Where these are set the client finds credentials without files.
_ENOUGH = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_SKIP_SIGNATURE",
)
_INDIRECT = ("sso_session", "sso_start_url", "role_arn", "credential_process")


def profile_settings(settings: Mapping[str, str], bucket: str, *, at_vendor: bool) -> dict[str, str]:
    """Return what the shared files add to the settings of an S3 client.

    Args:
        settings: What is set already.
        bucket: The bucket, whose region is asked for when nothing tells it.
        at_vendor: Whether the bucket is in AWS itself.

    Raises:
        StorageError: when the profile that AWS_PROFILE names gets its keys in a way that only AWS's own tools know.
    """
    given = bool({"access_key_id", "skip_signature", "bearer_token"} & settings.keys())
    found = {} if given or any(os.environ.get(name) for name in _ENOUGH) else _from_files()
    has_region = "region" in settings or any(
        os.environ.get(name) for name in ("AWS_REGION", "AWS_DEFAULT_REGION")
    )
    if has_region:
        found.pop("region", None)
    elif "region" not in found and at_vendor:
        with suppress(OSError):
            found["region"] = fs.resolve_s3_region(bucket)
    return found


def _from_files() -> dict[str, str]:
    profile = os.environ.get("AWS_PROFILE", "default")
    places = (
        (os.environ.get("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"), profile),
        (
            os.environ.get("AWS_CONFIG_FILE", "~/.aws/config"),
            profile if profile == "default" else f"profile {profile}",
        ),
    )
    raw: dict[str, str] = {}
    for file, section in places:
        parser = configparser.RawConfigParser()
        parser.read(Path(file).expanduser(), encoding="utf-8")
        if parser.has_section(section):
            raw = {**dict(parser.items(section)), **raw}
    if "aws_access_key_id" not in raw and os.environ.get("AWS_PROFILE") and set(_INDIRECT) & raw.keys():
        raise StorageError(
            f"the AWS profile {profile!r} gets its keys by {', '.join(sorted(set(_INDIRECT) & raw.keys()))}, which only AWS's "
            f"tools can do: run `eval $(aws configure export-credentials --profile {profile} --format env)` first"
        )
    return {name: raw[key] for key, name in _KEYS.items() if raw.get(key)}
