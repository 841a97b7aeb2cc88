"""Images of observations: what an environment gives, through vectors, conversations, records and JSON lines."""

from __future__ import annotations

import io
from typing import Any

import pytest

import gem_core
from gem_core import Env
from gem_core.episode import Episode
from gem_core.errors import EnvError, FailureKind, PolicyError, TemplateError
from gem_core.image import PngImage, images_of
from gem_core.vector import Autoreset, Task, Transition, make_vec
from gem_core.vector._calls import FailedCall, Reset
from gem_core.vector._hosted import HostedEnv
from gem_core.vector._slots import SlotState
from gem_support.image_envs import Gallery, Restless, Spoiled, drawn, uri
from gem_train.records._content import packed_episode, unpacked_episode
from gem_train.rollout import (
    ChatTemplate,
    Completion,
    EpisodeBuilder,
    ImagePrompt,
    ImageReader,
    RolloutSettings,
    Thoughts,
    images_in,
)
from gem_train.rollout.records import recorded, restored
from gem_train.rows import cut_rows, rows_of

Image = pytest.importorskip("PIL.Image")
qwen = pytest.importorskip("transformers.models.qwen2_vl.image_processing_pil_qwen2_vl")
tokenizers = pytest.importorskip("tokenizers")

SPECIAL = ["<|end|>", "<|user|>", "<|assistant|>", "<|vision_start|>", "<|image_pad|>", "<|vision_end|>"]
TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for part in m.content %}{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
MESSAGE = "an image of it"


@pytest.fixture(autouse=True, scope="module")
def _registered() -> None:
    for kind in (Gallery, Restless, Spoiled):
        gem_core.register(f"test:{kind.__name__}-v0", kind)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    from transformers import PreTrainedTokenizerFast

    letters = [*SPECIAL, "<unk>", *map(chr, range(32, 127))]
    core = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({one: number for number, one in enumerate(letters)}, unk_token="<unk>")
    )
    core.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex(r"[\s\S]"), "isolated")
    core.decoder = tokenizers.decoders.Fuse()
    made = PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token="<|end|>", unk_token="<unk>", additional_special_tokens=SPECIAL[1:]
    )
    made.chat_template = TEMPLATE
    return made


@pytest.fixture
def reader() -> ImageReader:
    limits = {"shortest_edge": 28 * 28, "longest_edge": 112 * 112}
    processor = qwen.Qwen2VLImageProcessorPil(patch_size=14, merge_size=2, temporal_patch_size=1, size=limits)
    return ImageReader(processor, SPECIAL.index("<|image_pad|>"), [SPECIAL.index("<|vision_start|>")])


def texts(tokenizer: Any, ids: Any) -> str:
    return tokenizer.decode(list(ids), skip_special_tokens=False)


def played(
    tokenizer: Any, reader: ImageReader, history: int | None = None, thought: str = "", thoughts: Thoughts = "keep"
) -> tuple[Episode, list[Any]]:
    """An episode of the gallery, and the prompts that were asked. `thought`: what the policy thinks before it acts."""
    env = Gallery()
    settings = RolloutSettings(max_response_tokens=8, history=history, thoughts=thoughts)
    episode = Episode(env_id="test:Gallery-v0", seed=3, turns=[])
    builder = EpisodeBuilder(episode, settings.template(tokenizer, reader), settings, *env.reset(seed=3))
    prompts: list[Any] = []
    while not builder.over:
        prompts.append(builder.prompt)
        words = tokenizer.encode(f"{thought}go{len(prompts)}", add_special_tokens=False)
        action = builder.act(Completion([*words, tokenizer.eos_token_id], [-0.5] * (len(words) + 1)))
        builder.record(Transition(*env.step(action)))
    return episode, prompts


# -- one image -------------------------------------------------------------------------------------------------------


def test_all_sources_are_one_image():
    image = drawn(1, 28)
    file = io.BytesIO()
    image.save(file, format="PNG")
    made = [PngImage.of(one) for one in (image, file.getvalue(), bytearray(file.getvalue()), uri(1, 28))]
    assert len({one.uri for one in made}) == 1
    assert PngImage.of(made[0]) is made[0]
    assert made[0].size == (28, 28)
    assert made[0].png == file.getvalue()
    assert made[0].as_pil().tobytes() == image.tobytes()


@pytest.mark.parametrize("mode", ["L", "1", "P", "RGBA", "LA"])
def test_every_image_has_three_colors_and_no_hole(mode: str):
    image = PngImage.of(Image.new(mode, (4, 4))).as_pil()
    assert image.mode == "RGB"
    assert image.getpixel((0, 0)) == ((255, 255, 255) if mode.endswith("A") else (0, 0, 0))


@pytest.mark.parametrize(
    "source",
    [
        None,
        3,
        "",
        b"GIF89a",
        "image.png",
        "https://example.org/image.png",
        "data:image/jpeg;base64,AAAA",
        "data:image/png;base64,????",
        uri(0)[:-20],
        uri(0)[:-1],
    ],
)
def test_what_is_no_image_is_refused(source: Any):
    with pytest.raises(EnvError, match="is no image"):
        PngImage.of(source)


def test_a_image_that_no_model_reads_is_refused():
    with pytest.raises(EnvError, match="8000 x 8000 pixels; give one of 1 to"):
        PngImage.of(Image.new("1", (8000, 8000)))


def test_a_damaged_file_is_said():
    png = bytearray(PngImage.of(drawn(1)).png)
    png[60:90] = bytes(30)
    with pytest.raises(EnvError, match="damaged"):
        PngImage.of(bytes(png)).as_pil()


# -- vectors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["sync", "thread", "process"])
def test_vectors_show_the_same_images_as_data(backend: Any):
    alone = Gallery()
    with make_vec("test:Gallery-v0", 2, backend=backend, seed=5, autoreset=Autoreset.DISABLED) as vec:
        observations, infos = vec.reset()
        for slot in range(2):
            observation, info = alone.reset(seed=infos[slot]["seed"])
            assert observations[slot] == observation
            assert infos[slot]["images"] == [one.uri for one in images_of(info)]
        shown, _, _, _, after = vec.step(["left", "right"])
        expected = alone.step("right")
        assert shown[1] == expected[0]
        assert after[1]["images"] == [one.uri for one in images_of(expected[4])]
        assert after[1]["kept"] == 1


def test_what_is_no_image_costs_the_episode():
    with make_vec("test:Spoiled-v0", 1, backend="sync", autoreset=Autoreset.DISABLED) as vec:
        vec.reset()
        _, _, _, truncated, infos = vec.step(["x"])
    assert truncated[0]
    assert "images' that no model can be shown" in infos[0]["error"]


@pytest.mark.parametrize(("kind", "same"), [(Gallery, True), (Restless, False)])
def test_a_replay_must_show_the_same_images(kind: type[Env], same: bool):
    start = Reset(0, Task(0, "test:x", 0), 0, (1, 1))
    state = SlotState("test:x", start)
    lost = HostedEnv(0, kind)
    opening: Any = lost.answer(state.start_with(start))
    state.opened(opening)
    turn: Any = lost.answer("left")
    state.played("left", turn)
    state.lose()
    outcome = HostedEnv(0, kind).answer(state.step("right"))
    if same:
        assert isinstance(outcome, Transition)
        assert outcome.observation == "again right"
    else:
        assert isinstance(outcome, FailedCall)
        assert outcome.kind is FailureKind.DIVERGED


# -- conversations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("history", [None, 1, 2])
def test_a_placeholder_is_expanded_once_and_stays(tokenizer: Any, reader: ImageReader, history: int | None):
    episode, prompts = played(tokenizer, reader, history)
    first = Gallery().reset(seed=3)[1]["images"][0]
    assert [one.turn for one in episode.images] == [0, 1, 2, 2, 3, 3, 3]
    assert episode.images[0].uri == PngImage.of(first).uri
    image = "<|vision_start|>" + "<|image_pad|>" * 4 + "<|vision_end|>"
    said = ["look", "again go1", "again go2"]
    messages = [f"<|user|>{image * max(1, turn)}{words}" for turn, words in enumerate(said)]
    for turn, prompt in enumerate(prompts):
        shown = messages[max(0, turn + 1 - (history or 99)) : turn + 1]
        words = [f"go{number + 1}<|end|>" for number in range(turn)][-len(shown) + 1 :] if len(shown) > 1 else []
        parts = [f"{message}<|end|><|assistant|>{word}" for message, word in zip(shown, [*words, ""], strict=True)]
        assert texts(tokenizer, prompt).replace("<|end|><|end|>", "<|end|>") == "".join(parts)
        assert isinstance(prompt, ImagePrompt)
        assert prompt.count(reader.placeholder) == 4 * len(images_in(prompt))
    for sequence in episode.sequences:
        for one in sequence.images:
            assert one.grid == (1, 4, 4)
            assert {*sequence.ids[one.start : one.end]} == {reader.placeholder}
            assert one.end - one.start == 4
    assert all("images" not in turn.info and turn.info["kept"] for turn in episode.turns)


def test_images_of_other_sizes_have_other_numbers_of_ids(tokenizer: Any, reader: ImageReader):
    counts = {side: reader.tokens(reader.read(uri(1, side)).grid) for side in (28, 56, 84, 112)}
    assert counts == {28: 1, 56: 4, 84: 9, 112: 16}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("count", "P1P2count"),
        ("<image> and <image>?", "P1 and P2?"),
        ("one <image>", "P1P2one <image>"),
        ("", "P1P2"),
    ],
)
def test_where_images_stand(tokenizer: Any, reader: ImageReader, message: str, expected: str):
    template = ChatTemplate(tokenizer, images=reader)
    shown = texts(tokenizer, template.initial_prompt(message, "user", 2))
    for number in (1, 2):
        shown = shown.replace("<|vision_start|><|image_pad|><|vision_end|>", f"P{number}", 1)
    assert shown == f"<|user|>{expected}<|end|><|assistant|>"


@pytest.mark.parametrize("images", [0, 2])
def test_no_text_becomes_a_image(tokenizer: Any, reader: ImageReader, images: int):
    template = ChatTemplate(tokenizer, images=reader)
    ids = template.initial_prompt("<|vision_start|><|image_pad|><|vision_end|> <image>", "user", images)
    assert ids.count(reader.placeholder) == images


def test_a_policy_cannot_say_a_image(tokenizer: Any, reader: ImageReader):
    settings = RolloutSettings(max_response_tokens=8)
    builder = EpisodeBuilder(
        Episode(env_id="x", seed=0, turns=[]), settings.template(tokenizer, reader), settings, *Gallery().reset(seed=0)
    )
    for one in reader.reserved:
        with pytest.raises(PolicyError, match="stands for an image"):
            builder.act(Completion([one]))


def test_a_model_of_text_refuses_images(tokenizer: Any):
    settings = RolloutSettings(max_response_tokens=8)
    with pytest.raises(TemplateError, match=r"1 image\(s\), and this model reads text only. Use a vision-language"):
        EpisodeBuilder(
            Episode(env_id="x", seed=0, turns=[]), settings.template(tokenizer), settings, *Gallery().reset(seed=0)
        )


def test_a_template_that_drops_images_is_refused(tokenizer: Any, reader: ImageReader):
    blind = tokenizer.__class__(tokenizer_object=tokenizer.backend_tokenizer, eos_token="<|end|>", unk_token="<unk>")
    blind.chat_template = TEMPLATE.replace("<|vision_start|><|image_pad|><|vision_end|>", "")
    with pytest.raises(TemplateError, match="does not show the model the 2 images"):
        ChatTemplate(blind, images=reader).initial_prompt("x", "user", 2)


def test_an_image_processor_of_another_kind_is_refused():
    with pytest.raises(TemplateError, match="has no merge_size"):
        ImageReader(object(), 4)


def test_a_reader_keeps_what_it_read_up_to_a_limit(reader: ImageReader, monkeypatch: pytest.MonkeyPatch):
    first = reader.read(uri(1))
    assert reader.read(uri(1)) is first
    monkeypatch.setattr("gem_train.rollout._images.KEPT_BYTES", first.pixels.nbytes)
    reader.read(uri(2))
    assert reader.read(uri(1)) is not first
    assert (reader.read(uri(1)).pixels == first.pixels).all()


@pytest.mark.parametrize("history", [None, 2])
def test_images_keep_their_places_where_thoughts_are_dropped(
    tokenizer: Any, reader: ImageReader, history: int | None
) -> None:
    kept, prompts = played(tokenizer, reader, history)
    dropped, shorter = played(tokenizer, reader, history, thought="<think>so</think>", thoughts="drop")
    assert [texts(tokenizer, one) for one in shorter] == [texts(tokenizer, one) for one in prompts]
    assert [[*images_in(one)] for one in shorter] == [[*images_in(one)] for one in prompts]
    assert [turn.sequence for turn in dropped.turns] == [*range(len(dropped.turns))]
    assert dropped.images == kept.images
    for sequence in dropped.sequences:
        for one in sequence.images:
            assert {*sequence.ids[one.start : one.end]} == {reader.placeholder}
    for row, prompt in zip(rows_of(dropped, "episode"), shorter, strict=True):
        assert [one.uri for one in row.images] == [*images_in(prompt)]


# -- what is kept ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("history", [None, 1])
def test_an_episode_is_read_back_with_its_images(tokenizer: Any, reader: ImageReader, history: int | None):
    episode, _ = played(tokenizer, reader, history)
    again = [restored(recorded(episode)), unpacked_episode(packed_episode(episode, full=True), len(episode.turns))]
    for one in again:
        assert one.images == episode.images
        assert [sequence.images for sequence in one.sequences] == [part.images for part in episode.sequences]
        assert one.turns == episode.turns
    assert unpacked_episode(packed_episode(episode, full=False), len(episode.turns)).images == []


def test_records_of_text_are_what_they_were(tokenizer: Any):
    episode = Episode(env_id="x", seed=0, turns=[])
    assert "images" not in recorded(episode)


def test_rows_have_the_images_of_their_ids(tokenizer: Any, reader: ImageReader):
    episode, prompts = played(tokenizer, reader)
    [whole] = rows_of(episode, "episode")
    assert [one.uri for one in whole.images] == [one.uri for one in episode.images[:4]]
    for row, prompt in zip(rows_of(episode, "turn"), prompts, strict=True):
        assert [one.uri for one in row.images] == [*images_in(prompt)]
        assert row.ids[: row.prompt_length].tolist() == prompt.tolist()
    for _, row in cut_rows([whole], 3):
        assert row.ids.count(reader.placeholder) == 4 * len(row.images)
