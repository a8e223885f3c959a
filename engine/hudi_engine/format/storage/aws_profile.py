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
    """Return what the shared files add to the settings of an S3 client."""
    found = _from_files() if _asks_files(settings) else {}
    has_region = "region" in settings or any(
        os.environ.get(name) for name in ("AWS_REGION", "AWS_DEFAULT_REGION")
    )
    if has_region:
        found.pop("region", None)
    elif "region" not in found and at_vendor:
        with suppress(OSError):
            found["region"] = fs.resolve_s3_region(bucket)
    return found


def profile_marks(settings: Mapping[str, str]) -> tuple[int, ...]:
    """Return what changes whenever the shared files do, where the keys of a client come from there: tools renew them."""
    return tuple(_changed_at(path) for path in _places()) if _asks_files(settings) else ()


def _changed_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _asks_files(settings: Mapping[str, str]) -> bool:
    given = bool({"access_key_id", "skip_signature", "bearer_token"} & settings.keys())
    return not given and not any(os.environ.get(name) for name in _ENOUGH)


def _places() -> tuple[Path, Path]:
    """Return the files of keys and of settings."""
    keys = os.environ.get("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials")
    return Path(keys).expanduser(), Path(os.environ.get("AWS_CONFIG_FILE", "~/.aws/config")).expanduser()


def _from_files() -> dict[str, str]:
    """Return what the section of the profile says in either file, the one of keys first; raises StorageError."""
    profile = os.environ.get("AWS_PROFILE", "default")
    sections = (profile, profile if profile == "default" else f"profile {profile}")
    raw: dict[str, str] = {}
    for path, section in zip(_places(), sections, strict=True):
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError) as error:
            # which would repeat the line, and that may be a secret
            raise StorageError(
                f"{path} is no file of profiles as AWS's tools write it ({type(error).__name__}); mend it, or set the keys in "
                "storage_options of the dbt profile or in the environment"
            ) from None
        if parser.has_section(section):
            raw = {**dict(parser.items(section)), **raw}
    if "aws_access_key_id" not in raw and os.environ.get("AWS_PROFILE") and set(_INDIRECT) & raw.keys():
        raise StorageError(
            f"the AWS profile {profile!r} gets its keys by {', '.join(sorted(set(_INDIRECT) & raw.keys()))}, which only AWS's "
            f"tools can do: run `eval $(aws configure export-credentials --profile {profile} --format env)` first"
        )
    return {name: raw[key] for key, name in _KEYS.items() if raw.get(key)}
