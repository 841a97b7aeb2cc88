"""An endpoint is sent the images of a task, and is right because of them."""

from __future__ import annotations

import pytest

from gem_core.image import PngImage
from gem_evaluation import evaluate, load_model
from gem_support.chat_server import Body, ChatServer

pytest.importorskip("PIL")

COUNT, MAZE = "visual:Count-v0-easy", "visual:Maze-v0-easy"


def images(message: Body) -> list[PngImage]:
    """What the parts of a message show."""
    parts = message["content"]
    assert {part["type"] for part in parts} == {"text", "image_url"}
    return [PngImage.of(part["image_url"]["url"]) for part in parts if part["type"] == "image_url"]


def shapes(image: PngImage) -> int:
    """The number of cells of 14 pixels whose middle is not white; each shape covers that of its own."""
    shown = image.as_pil()
    middles = [range(7, side, 14) for side in shown.size]
    return sum(shown.getpixel((x, y)) != (255, 255, 255) for x in middles[0] for y in middles[1])


def test_an_answer_that_only_the_image_has() -> None:
    def counted(body: Body) -> str:
        [question] = body["messages"]
        [image] = images(question)
        return f"\\boxed{{{shapes(image)}}}"

    with ChatServer(counted).running() as server:
        results = evaluate(COUNT, load_model("stub", base_url=server.url), tasks=12)
    assert len(server.requests) == 12
    assert results.together.success is not None
    assert results.together.success.value == 1.0


def test_every_turn_has_its_image() -> None:
    with ChatServer(lambda body: "\\boxed{up}").running() as server:
        evaluate(MAZE, load_model("stub", base_url=server.url), tasks=2)
    for body in server.requests:
        said = [message for message in body["messages"] if message["role"] == "user"]
        assert all(len(images(message)) == 1 for message in said)
    assert max(len(body["messages"]) for body in server.requests) > 2
