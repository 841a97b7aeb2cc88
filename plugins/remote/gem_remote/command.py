"""`gem-core serve`: its options and its start."""

from __future__ import annotations

import ipaddress
import logging
import os
import socket
import sys
from functools import partial
from typing import Annotated, Any

import typer

from gem_core.cli import parse_settings, plugins_at_work, printable, say
from gem_core.errors import EnvError, MissingExtraError, convert_errors, described
from gem_core.installation import install_line, missing_from
from gem_core.plugins import manager
from gem_core.registry import build, spec
from gem_core.specs import EnvSpec
from gem_remote._listening import bound_socket
from gem_remote._messages import TOKEN, shared_token


def serve(
    env_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="For example game:GuessTheNumber-v0-easy.")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set an argument of the environments. Repeat to set several."),
    ] = None,
    host: Annotated[
        str, typer.Option(help=f"Address to listen at. Other than this machine needs {TOKEN}.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free.")] = 8765,
    max_sessions: Annotated[int, typer.Option(min=1, help="Environments that are played at the same time.")] = 256,
    idle_seconds: Annotated[float, typer.Option(min=1, help="A session without a call for so long is ended.")] = 3600,
    call_seconds: Annotated[float, typer.Option(min=0.1, help="A session whose call takes longer is ended.")] = 600,
    message_bytes: Annotated[int, typer.Option(min=1024, help="The largest action or answer.")] = 16 << 20,
) -> None:
    """Serve environments to `remote:` ids on other machines."""
    token = shared_token()
    if not token and not _is_loopback(host):
        raise EnvError(
            f"anybody who reaches {host} could play. Set {TOKEN} to a secret, here and where the clients run, for "
            f'example: export {TOKEN}="$(python3 -c "import secrets; print(secrets.token_urlsafe())")"'
        )
    if missing := missing_from("serve"):
        raise MissingExtraError(
            f"this needs {' and '.join(missing)}, which is not installed. Next: {install_line('serve')}"
        )
    from gem_remote._server import EnvServer, Limits

    kwargs = parse_settings(settings or [])
    with plugins_at_work(manager):
        builders = {env_id: partial(build, _playable(env_id, kwargs), kwargs) for env_id in env_ids}
    _log_to_stderr()
    limits = Limits(sessions=max_sessions, idle=idle_seconds, call=call_seconds, message=message_bytes)
    server = EnvServer(builders, limits, token)
    with bound_socket(host, port, EnvError, listen=True) as address:
        try:
            server.run(address, lambda: _announce(address, env_ids[0]))
        finally:
            if server.sessions:
                # A call that does not return would keep the process for as long.
                say(f"{server.sessions} sessions were still playing.", err=True)
                sys.stdout.flush()
                os._exit(1)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Printable(logging.Formatter):
    """Leaves no control characters: exceptions may quote what a client sent, and the log is on a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def _log_to_stderr() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(_Printable("%(message)s"))
    logging.basicConfig(handlers=[handler])


def _playable(env_id: str, kwargs: dict[str, Any]) -> EnvSpec:
    """The spec, once an environment was built from it: a mistake shows before the first client comes."""
    env_spec = spec(env_id)
    env = build(env_spec, kwargs)
    with convert_errors(lambda error: EnvError(f"{env_id} could not be closed: {described(error)}")):
        env.close()
    return env_spec


def _announce(address: socket.socket, env_id: str) -> None:
    host, port = address.getsockname()[:2]
    host = f"[{host}]" if ":" in host else {"0.0.0.0": "127.0.0.1"}.get(host, host)
    say(f"Listening at ws://{host}:{port}\nexport GEM_REMOTE_URL=ws://{host}:{port}\ngem-core play remote:{env_id}")
    sys.stdout.flush()  # the parent process may read it from a pipe
