"""A client of one bucket: its service, its credentials, and its errors as Python's."""

from __future__ import annotations

import configparser
import errno
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyarrow import fs

from hudi_engine.errors import HudiError, StorageError
from hudi_engine.format.storage.redact import redacted, secrets_of
from hudi_engine.format.storage.uris import RemoteUri, StoreKind

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

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
    """Return the profile's section of both files, the one of keys first; raises StorageError."""
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


_CLIENT_OPTIONS: ClientConfig = {"timeout": "120s", "connect_timeout": "10s", "read_timeout": "60s"}
_RETRIES: RetryConfig = {"max_retries": 8, "retry_timeout": timedelta(seconds=90)}
_AZURE_HOST = "core.windows.net"
_ENDPOINTS = {
    StoreKind.S3: ("endpoint", ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")),
    StoreKind.GCS: ("base_url", ("GOOGLE_BASE_URL",)),
    StoreKind.AZURE: ("endpoint", ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")),
}
"""By kind: setting of the service's address, and the variables it may come from."""
# What settings were called while pyarrow's clients took them, and what Spark's and other tools' users know.
_OTHER_NAMES: Mapping[StoreKind, Mapping[str, str]] = {
    StoreKind.S3: {
        "access_key": "access_key_id",
        "secret_key": "secret_access_key",
        "endpoint_url": "endpoint",
        "force_virtual_addressing": "virtual_hosted_style_request",
        "anonymous": "skip_signature",
    },
    StoreKind.GCS: {"anonymous": "skip_signature", "endpoint": "base_url", "endpoint_override": "base_url"},
    StoreKind.AZURE: {"endpoint_override": "endpoint", "anonymous": "skip_signature"},
}
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist")
_IDENTITY_SERVERS = ("169.254.169.254", "169.254.170.2", "metadata.google.internal")
"""Servers that a client requests credentials from when none were given: the identity of a machine or container in the cloud."""
_CREDENTIALS: Mapping[StoreKind, tuple[str, ...]] = {
    StoreKind.S3: ("access_key_id", "secret_access_key"),
    StoreKind.GCS: ("service_account",),
    StoreKind.AZURE: ("account_name", "account_key"),
}
_FILE_KEYS = frozenset((*_CREDENTIALS[StoreKind.S3], "session_token"))
_WRITTEN_WITHIN_NS = 10_000_000_000
"""A file of keys that changed longer ago is as it is meant to be, whatever it holds."""
_ON_ITS_OWN = ("scheme", "endpoint_override", "allow_http", "timeout", "connect_timeout", "proxy_url")


@dataclass(frozen=True)
class ObjectClient:
    """How one bucket is reached. It can be sent to other processes; each opens connections of its own."""

    kind: StoreKind
    bucket: str
    public: str
    settings: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, uri: RemoteUri, settings: Mapping[str, str]) -> ObjectClient:
        """Put together what is known of a place; later ones of the settings, then the URI's own login, win."""
        kind = uri.kind
        assert kind is not None, "the caller has looked"
        names = _OTHER_NAMES[kind]
        merged = {names.get(key, key): value for key, value in {**settings, **uri.login}.items()}
        if kind is StoreKind.AZURE:
            merged = {**_azure_account(uri), **merged}
        scheme = merged.pop("scheme", "https")
        address = _ENDPOINTS[kind][0]
        if "endpoint_override" in merged:
            merged[address] = merged.pop("endpoint_override")
        if merged.get(address) and "://" not in merged[address]:
            merged[address] = f"{scheme}://{merged[address]}"
        merged.pop("allow_bucket_creation", None)
        client = cls(kind, uri.bucket, uri.public, merged)
        client.store  # noqa: B018 - wrong settings raise now
        return client

    @property
    def address(self) -> str:
        """Address of the service when it is not the vendor's own, else ``""``."""
        setting, variables = _ENDPOINTS[self.kind]
        addresses = [self.settings.get(setting, ""), *(os.environ.get(name, "") for name in variables)]
        found = next((each for each in addresses if each), "")
        return "" if _AZURE_HOST in found or ".amazonaws.com" in found else found

    @property
    def store(self) -> ObjectStore:
        """The open client of this process; another one once the environment or the files of its keys have changed."""
        key = (self.kind, self.bucket, tuple(sorted(self.settings.items())))
        outside = (_environment(), profile_marks(self.settings) if self.kind is StoreKind.S3 else ())
        found = _OPEN.get(key)
        if found is None or found[0][0] != outside[0]:
            found = _OPEN[key] = (outside, self._open())
        elif found[0] != outside and (again := self._opened_again(found[1], max(outside[1]))) is not None:
            found = _OPEN[key] = (outside, again)
        return found[1]

    def _opened_again(self, before: Any, changed_ns: int) -> Any:
        """Return a client of the keys in the files now; None while a tool writes a file again, which empties it first."""
        if abs(time.time_ns() - changed_ns) > _WRITTEN_WITHIN_NS:
            return self._open()
        with suppress(StorageError):
            made: Any = self._open()
            if not (_FILE_KEYS & {*before.config}) - {*made.config}:
                return made
        return None

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    @contextmanager
    def errors(self, path: str) -> Iterator[None]:
        """Turn obstore's errors inside the block into OSErrors of the matching kind, without secrets."""
        from obstore import exceptions

        place = f"{self.public.partition('://')[0]}://{self.bucket}/{path}"
        try:
            yield
        except FileNotFoundError as error:
            self._check_bucket(str(error))
            raise FileNotFoundError(errno.ENOENT, "no such file", place) from None
        except exceptions.AlreadyExistsError:
            raise FileExistsError(errno.EEXIST, "the file exists already", place) from None
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
            raise PermissionError(errno.EACCES, self._message(error), place) from None
        except exceptions.NotSupportedError as error:
            raise OSError(errno.ENOTSUP, self._message(error), place) from None
        except exceptions.PreconditionError:
            raise ChangedMeanwhileError(errno.ESTALE, "the file changed meanwhile", place) from None
        except exceptions.BaseError as error:
            self._check_bucket(str(error))
            raise OSError(errno.EIO, self._message(error), place) from None
        except HudiError:
            raise
        except ValueError as error:
            raise OSError(errno.EINVAL, self._message(error), place) from None

    def _check_bucket(self, message: str) -> None:
        """Raise what concerns the whole bucket, whatever path was requested."""
        if any(code in message for code in _NO_BUCKET):
            raise StorageError(
                f"{self.public!r} cannot be reached: there is no bucket or container {self.bucket!r}; create it"
            ) from None
        if any(server in message for server in _IDENTITY_SERVERS):
            raise StorageError(
                f"{self.public!r} cannot be reached: no credentials were found in storage_options, the environment or the URI, "
                f"and this machine has no identity of its own. Set {' and '.join(_CREDENTIALS[self.kind])} in storage_options "
                "of the dbt profile or the same in the environment, or skip_signature=true for a public bucket; docs/stores.md "
                "has them all"
            ) from None

    def _open(self) -> ObjectStore:
        """Open the store with its settings; what goes wrong is reported without the settings, which hold secrets."""
        from obstore import exceptions
        from obstore import store as stores

        makers: Mapping[StoreKind, Any] = {
            StoreKind.S3: stores.S3Store,
            StoreKind.GCS: stores.GCSStore,
            StoreKind.AZURE: stores.AzureStore,
        }
        settings = dict(self.settings)
        options: dict[str, Any] = dict(_CLIENT_OPTIONS)
        options.update({name: settings.pop(name) for name in _ON_ITS_OWN if name in settings})
        if self.address.startswith("http://"):
            options["allow_http"] = "true"
        if self.kind is StoreKind.S3:
            settings = {**profile_settings(settings, self.bucket, at_vendor=not self.address), **settings}
        try:
            made: ObjectStore = makers[self.kind](
                self.bucket, config=settings or None, client_options=options, retry_config=_RETRIES
            )
        except (exceptions.BaseError, ValueError) as error:
            raise StorageError(
                f"cannot open the storage of {self.public!r}: {self._message(error)}. Settings of a store come from the "
                "query part of its URI, from storage_options of the dbt profile, or from the environment; "
                "docs/stores.md lists them"
            ) from None
        return made

    def _message(self, error: Exception) -> str:
        text = str(error).split("Debug source:", 1)[0].strip()
        return redacted(text[:600], secrets_of(self.settings))


class ChangedMeanwhileError(OSError):
    """A file is not, or no longer, what a conditional write expects."""


_OPEN: dict[Any, tuple[Any, ObjectStore]] = {}
"""Clients of this process, with what of its surroundings they were opened by: tables of a bucket share their connections."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_OPEN.clear)


def _environment() -> tuple[tuple[str, str], ...]:
    """Return the variables that clients take settings from, which tests and long-lived processes change."""
    starts = ("AWS_", "GOOGLE_", "AZURE_")
    return tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith(starts)))


def _azure_account(uri: RemoteUri) -> dict[str, str]:
    """Return account and address that ``container@account.host`` names."""
    host = uri.account_host
    if not host:
        return {}
    account, _, rest = host.partition(".")
    merged = {"account_name": account}
    service = rest.partition(".")[2]
    if service and service != _AZURE_HOST and "fabric" not in service:
        merged["endpoint"] = f"https://{account}.blob.{service}"
    return merged
