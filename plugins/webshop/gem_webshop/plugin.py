"""What this package registers: six ids, as data."""

from __future__ import annotations

from collections.abc import Iterable

from gem_core.hookspecs import hookimpl
from gem_core.specs import EnvSpec

GEM_PLUGIN_API = ">=1,<2"

_TAGS = ("web", "multi-turn")


@hookimpl
def gem_envs() -> Iterable[EnvSpec]:
    """`webshop:{train,test}-{html,text,text_rich}`."""
    for split in ("train", "test"):
        for form in ("html", "text", "text_rich"):
            kwargs = {"split": split, "form": form}
            libraries = ("bm25s", "PyStemmer", "rapidfuzz")
            yield EnvSpec(
                f"webshop:{split}-{form}",
                "gem_webshop.env:WebShop",
                kwargs,
                _TAGS,
                "webshop",
                libraries,
                trusting=("data",),
            )
