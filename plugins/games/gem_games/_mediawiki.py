"""Pages of a wiki, asked for over MediaWiki's action API (https://www.mediawiki.org/wiki/API:Main_page)."""

from __future__ import annotations

import http.client
import json
import random
import string
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from email.message import Message
from typing import Any, cast

from gem_core.errors import EnvError
from gem_core.waiting import waiting
from gem_games._encyclopedia import Page, can_be_boxed
from gem_games._page_text import PageText

SECONDS = 20.0
"""Seconds that a wiki may send nothing."""
ATTEMPTS = 4
_MAX_WAIT = 30.0
"""Seconds between two attempts, whatever the wiki asks for."""
_MAX_BYTES = 16 << 20
"""Bytes of an answer."""
_PARTS = 200
"""Answers that the links of a page may come in."""
_BUSY = {"maxlag", "ratelimited", "readonly", "internal_api_error_DBQueryTimeoutError"}
"""Errors of the API that pass."""
_BUSY_STATUS = {429, 500, 502, 503, 504}


class MediaWiki:
    """The articles of a wiki: pages of its main namespace.

    Args:
        name: the address of its `api.php`.

    Raises:
        EnvError: that is no address.
    """

    def __init__(self, name: str) -> None:
        try:
            host = urllib.parse.urlsplit(name).hostname
        except ValueError:
            host = None
        if not host:
            raise EnvError(f"{name!r} is no address. {_CHECK}")
        self.name = name

    def title(self, rng: random.Random) -> str:
        """The title of an article: one of the first fifty from two random letters on. Raises `EnvError` without one."""
        letters = rng.choice(string.ascii_uppercase) + rng.choice(string.ascii_lowercase)
        asked = {"list": "allpages", "apnamespace": "0", "apfilterredir": "nonredirects", "aplimit": "50"}
        for start in ({"apfrom": letters}, {}):
            answer = self._ask({"action": "query", **asked, **start})
            try:
                titles = [page["title"] for page in answer["query"]["allpages"]]
            except (KeyError, TypeError) as error:
                raise self._unexpected("its articles", error) from error
            if found := [title for title in titles if can_be_boxed(title)]:
                return rng.choice(found)
        raise EnvError(f"the wiki {self.name} has no articles")

    def page(self, title: str) -> Page:
        """The article with this title, or the one that it redirects to.

        Raises:
            EnvError: there is none, or the wiki gives no answer.
        """
        asked = {"action": "parse", "page": title, "prop": "text", "section": "0", "redirects": "1"}
        answer = self._ask({**asked, "disablelimitreport": "1", "disableeditsection": "1"})
        try:
            name, html = answer["parse"]["title"], answer["parse"]["text"]
            links = sorted({link for link in self._links(name) if link != name})
            return Page(name, PageText(html).text, tuple(links))
        except (KeyError, TypeError, AttributeError) as error:
            raise self._unexpected(repr(title), error) from error

    def _links(self, title: str) -> Iterator[str]:
        """Titles of the articles that a page links to. Redirects are followed, and pages that do not exist left out."""
        asked = {"action": "query", "titles": title, "generator": "links", "gplnamespace": "0", "gpllimit": "max"}
        more: Mapping[str, str] = {}
        for _ in range(_PARTS):
            answer = self._ask({**asked, "redirects": "1", **more})
            for page in answer.get("query", {}).get("pages", ()):
                if page.get("ns") == 0 and not page.get("missing") and can_be_boxed(page["title"]):
                    yield page["title"]
            if not (more := answer.get("continue", {})):
                return
        raise EnvError(f"the links of {title!r} come in more than {_PARTS} answers of {self.name}")

    def _ask(self, parameters: Mapping[str, str]) -> dict[str, Any]:
        """An answer of the API. Raises `EnvError` where there is none after some attempts, or where it is an error."""
        query = urllib.parse.urlencode({**parameters, "format": "json", "formatversion": "2", "maxlag": "5"})
        problem, pause = "", 0.0
        for attempt in range(ATTEMPTS):
            with waiting():
                time.sleep(pause)
            answer, problem, asked = self._once(f"{self.name}?{query}")
            if answer is not None:
                return answer
            pause = min(_MAX_WAIT, asked if asked is not None else 2.0**attempt)
        raise EnvError(f"the wiki {self.name} gave no answer in {ATTEMPTS} attempts: {problem}")

    def _once(self, url: str) -> tuple[dict[str, Any] | None, str, float | None]:
        """An answer; or what was wrong, and how many seconds the wiki wants to have before the next attempt."""
        request = urllib.request.Request(url, headers={"User-Agent": "gem-core (WikiGame)"})
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as response:
                text, pause = response.read(_MAX_BYTES + 1), _seconds(response.headers)
        except urllib.error.HTTPError as error:
            with error:
                if error.code not in _BUSY_STATUS:
                    raise EnvError(f"{self.name} says {error.code} {error.reason}. {_CHECK}") from error
                return None, f"{error.code} {error.reason}", _seconds(error.headers)
        except (OSError, http.client.HTTPException) as error:
            return None, repr(error), None
        if len(text) > _MAX_BYTES:
            raise EnvError(f"an answer of {self.name} has more than {_MAX_BYTES >> 20} MiB")
        answer = self._read(text)
        error = answer.get("error")
        if error is None:
            return answer, "", None
        if not isinstance(error, dict):
            raise EnvError(f"the wiki {self.name} says {str(error)[:200]}")
        error = cast("dict[str, Any]", error)
        if error.get("code") not in _BUSY:
            raise EnvError(f"the wiki {self.name} says {error.get('code')}: {str(error.get('info'))[:200]}")
        return None, str(error.get("code")), pause

    def _unexpected(self, asked: str, error: Exception) -> EnvError:
        return EnvError(f"an unexpected answer of {self.name} about {asked}: {error!r}. {_CHECK}")

    def _read(self, text: bytes) -> dict[str, Any]:
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise EnvError(f"{self.name} does not answer as MediaWiki does, but {text[:60]!r}. {_CHECK}")
        return cast("dict[str, Any]", answer)


_CHECK = "Give the address of the wiki's api.php, for example https://en.wikipedia.org/w/api.php"


def _seconds(headers: Message) -> float | None:
    """What `Retry-After` says; a date counts as nothing."""
    asked = headers.get("Retry-After", "")
    return float(asked) if asked.isascii() and asked.isdecimal() else None
