"""One coroutine per episode: the loop never blocks, and whatever happens, environments are closed."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import msgspec
import pytest

import gem_core
from gem_core import Env, make_vec
from gem_core.errors import ClosedError, EnvFailure, NotFoundError, PolicyError
from gem_core.failures import FailurePolicy
from gem_core.hookspecs import hookimpl
from gem_core.plugins import PluginManager, manager
from gem_core.seeding import derive_seed
from gem_core.vector import Task
from gem_core.wrappers import TurnLimit
from gem_support.waiting import wait_until
from gem_train.rollout import (
    BatchCollector,
    Completion,
    Episode,
    EpisodeRunner,
    RolloutSettings,
    StopReason,
)
from gem_train.rollout.records import recorded

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from gem_support.core_fixtures import Site

SEED = 5
SETTINGS = RolloutSettings(max_response_tokens=8)


class Watched(Env):
    """Counts what is built, closed and at work, and does what its actions and seeds say."""

    alive: ClassVar[set[int]] = set()
    busy: ClassVar[int] = 0
    most_busy: ClassVar[int] = 0
    most_alive: ClassVar[int] = 0
    overlapped: ClassVar[bool] = False
    threads: ClassVar[dict[int, set[int]]] = {}
    lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, seconds: float = 0.0, turns: int = 3, bad_seeds: tuple[int, ...] = ()) -> None:
        self.seconds, self.turns, self.bad_seeds = seconds, turns, bad_seeds
        self.working = False
        self._enter()
        time.sleep(seconds)
        self._leave()
        with Watched.lock:
            Watched.alive.add(id(self))
            Watched.most_alive = max(Watched.most_alive, len(Watched.alive))

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.seed, self.left = seed, self.turns
        self._enter()
        time.sleep(self.seconds)
        self._leave()
        return f"go {self.rng.randint(0, 9)}", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self._enter()
        time.sleep(self.seconds)
        self._leave()
        if self.seed in self.bad_seeds:
            raise OSError("gone")
        self.left -= 1
        return f"on {self.rng.randint(0, 9)}", 1.0, self.left == 0, False, {"success": self.left == 0}

    def sample_random_action(self) -> str:
        return ""

    def close(self) -> None:
        self._enter()
        self._leave()
        with Watched.lock:
            Watched.alive.discard(id(self))

    def _enter(self) -> None:
        with Watched.lock:
            Watched.overlapped |= self.working
            self.working = True
            Watched.threads.setdefault(id(self), set()).add(threading.get_ident())
            Watched.busy += 1
            Watched.most_busy = max(Watched.most_busy, Watched.busy)

    def _leave(self) -> None:
        with Watched.lock:
            self.working = False
            Watched.busy -= 1


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    register()
    Watched.alive, Watched.threads = set(), {}
    Watched.busy = Watched.most_busy = Watched.most_alive = 0
    Watched.overlapped = False
    yield
    wait_until(lambda: not Watched.alive and not runner_threads())
    # No environment was ever called from two threads at once.
    assert not Watched.overlapped


def register() -> None:
    gem_core.register("demo-runner:Watched-v0", Watched)


def runner_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(("gem-env", "gem-exchange"))]


class Babbler:
    """Samples any tokens at all, as a function of the prompt alone, in its own time."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, *, slow: bool = False) -> None:
        self.tokenizer, self.slow = tokenizer, slow
        self.order = random.Random(0)

    def complete(self, prompt: list[int]) -> Completion:
        dice = random.Random(derive_seed(*prompt))
        ids = [dice.randrange(len(self.tokenizer)) for _ in range(dice.randint(1, 6))]
        ended = dice.random() < 0.7
        ids += [self.tokenizer.eos_token_id] if ended else []
        return Completion(ids, [-dice.random() for _ in ids], truncated=not ended)

    async def __call__(self, prompt: list[int]) -> Completion:
        await asyncio.sleep(self.order.random() * 0.01 if self.slow else 0)
        return self.complete(prompt)


class Player(NamedTuple):
    """A runner and the policy that plays in it."""

    runner: EpisodeRunner
    policy: Any

    async def run(self, task: int) -> Episode | None:
        return await self.runner.run(self.policy, task)

    async def run_all(self, tasks: Sequence[int]) -> list[Episode]:
        return await self.runner.run_all(self.policy, tasks)

    def close(self, error: BaseException | None = None) -> None:
        self.runner.close(error)


Run = Callable[..., Player]


@pytest.fixture
def runner(words: PreTrainedTokenizerFast) -> Iterator[Run]:
    """Builds runners over `Watched`, closed at the end."""
    made: list[Player] = []

    def build(env_id: str = "demo-runner:Watched-v0", policy: Any = None, **arguments: Any) -> Player:
        env_kwargs = {name: arguments.pop(name) for name in ("seconds", "turns", "bad_seeds") if name in arguments}
        chosen = {"seed": SEED, "env_kwargs": env_kwargs, "settings": SETTINGS, **arguments}
        made.append(Player(EpisodeRunner(env_id, words, **chosen), policy or Babbler(words)))
        return made[-1]

    yield build
    for one in made:
        one.close()


def play(coroutine: Awaitable[Any]) -> Any:
    """Run to the end in a loop of its own, and check that no task is left in it."""

    async def main() -> Any:
        try:
            return await coroutine
        finally:
            assert asyncio.all_tasks() == {asyncio.current_task()}

    return asyncio.run(main())


def as_bytes(episodes: list[Episode]) -> list[bytes]:
    """What two runs have in common where they went alike."""
    alike = [msgspec.structs.replace(episode, run="", number=0) for episode in episodes]
    return [msgspec.json.encode(recorded(episode)) for episode in alike]


# -- episodes ----------------------------------------------------------------------------------------------------------


def test_an_episode_of_a_task(runner: Run, words: Any) -> None:
    episode = play(runner().run(7))
    assert (episode.slot, episode.group_id, episode.number) == (7, 7, 0)
    assert episode.seed == derive_seed(SEED, 7)
    assert (episode.stop_reason, episode.success) == (StopReason.TERMINATED, True)
    assert len(episode.turns) == 3
    for turn in episode.turns:
        assert episode.response_ids(turn).tolist() == Babbler(words).complete(episode.prompt_ids(turn)).ids


def test_one_task_gives_one_episode_and_all_come_in_order(runner: Run, words: Any) -> None:
    tasks = [3, 1, 3, 2]
    episodes = play(runner(policy=Babbler(words, slow=True), seconds=0.001).run_all(tasks))
    assert [episode.slot for episode in episodes] == tasks
    assert as_bytes(episodes[:1]) == as_bytes(episodes[2:3])
    assert play(runner().run_all([])) == []


@pytest.mark.parametrize("env_id", ["demo-runner:Watched-v0", "game:GuessTheNumber-v0-random", "game:Corridor-v0"])
@pytest.mark.parametrize("history", [None, 1, 2])
def test_task_i_is_the_first_episode_of_environment_i_of_a_vector(
    chatml: PreTrainedTokenizerFast, env_id: str, history: int | None
) -> None:
    settings = RolloutSettings(max_response_tokens=8, history=history, system_prompt="play")
    babbler = Babbler(chatml, slow=True)
    with make_vec(env_id, 6, seed=SEED) as vec:
        collector = BatchCollector(vec, lambda prompts: list(map(babbler.complete, prompts)), chatml, settings)
        expected = collector.collect_round().episodes
        collector.close()
    one = EpisodeRunner(env_id, chatml, settings, seed=SEED)
    episodes = play(one.run_all(babbler, range(6)))
    one.close()
    assert as_bytes(episodes) == as_bytes(expected)


def test_arguments_wrappers_and_settings_reach_the_episode(runner: Run) -> None:
    episode = play(runner(turns=9, wrappers=[lambda env: TurnLimit(env, 2)]).run(0))
    assert (len(episode.turns), episode.stop_reason) == (2, StopReason.TRUNCATED)
    settings = RolloutSettings(max_response_tokens=8, max_context_tokens=9)
    assert play(runner(settings=settings).run(0)).stop_reason is StopReason.CONTEXT_FULL


def test_a_failure_is_an_episode_with_its_error_and_the_others_are_unharmed(runner: Run) -> None:
    episodes = play(runner(bad_seeds=(derive_seed(SEED, 1),)).run_all(range(3)))
    assert [episode.error for episode in episodes] == [None, "OSError: gone", None]
    assert episodes[1].stop_reason is StopReason.ENV_ERROR
    assert len(episodes[1].turns) == 1
    healthy = play(runner().run_all(range(3)))
    assert as_bytes(episodes[::2]) == as_bytes(healthy[::2])


DECIDER = "@hookimpl\ndef gem_env_error(error):\n    return '{answer}'\n"


def test_a_dropped_episode_is_none_and_missing(site: Site, in_force: Callable[[], PluginManager], runner: Run) -> None:
    site.add("decider", DECIDER.format(answer="drop"))
    in_force().enable("decider")
    register()
    one = runner(bad_seeds=(derive_seed(SEED, 1),))
    assert play(one.run(1)) is None
    assert [episode.slot for episode in play(one.run_all(range(3)))] == [0, 2]


def test_a_plugin_can_stop_the_run(site: Site, in_force: Callable[[], PluginManager], runner: Run) -> None:
    site.add("decider", DECIDER.format(answer="raise"))
    in_force().enable("decider")
    register()
    with pytest.raises(EnvFailure, match="OSError: gone"):
        play(runner(bad_seeds=(derive_seed(SEED, 1),), seconds=0.01).run_all(range(8)))


def test_a_task_that_never_starts_stops_the_run(runner: Run) -> None:
    class Never(Watched):
        def reset(self, seed: int | None = None, **options: Any) -> Any:
            raise OSError("no server")

    gem_core.register("demo-runner:Never-v0", Never)
    one = runner("demo-runner:Never-v0")
    assert play(one.run(0)).error == "OSError: no server"
    with pytest.raises(EnvFailure, match=r"Never-v0 failed: [23]\d times(?s:.*)OSError: no server"):
        play(one.run_all([0] * 30))


def test_mistakes_show_when_it_is_built(words: Any) -> None:
    for arguments, error in [
        ({"env_id": "demo-runner:Wotched-v0"}, NotFoundError),
        ({"max_concurrent": 0}, ValueError),
    ]:
        chosen = {"env_id": "demo-runner:Watched-v0", "seed": 0, **arguments}
        with pytest.raises(error):
            EpisodeRunner(chosen.pop("env_id"), words, SETTINGS, **chosen)


def test_several_environments_each_in_places_of_their_own(words: Any) -> None:
    gem_core.register("demo-runner:Other-v0", Watched)
    ids = {"demo-runner:Watched-v0": 3, "demo-runner:Other-v0": 1}
    one, babbler = EpisodeRunner(ids, words, SETTINGS, seed=SEED, max_concurrent=4), Babbler(words, slow=True)

    async def main() -> list[Episode | None]:
        tasks = [Task(number, env_id, number) for number in range(5) for env_id in ids]
        return await asyncio.gather(*[one.run(babbler, task) for task in tasks])

    played = [(episode.env_id, episode.slot, episode.seed) for episode in play(main())]
    assert played == [(env_id, task, derive_seed(SEED, task)) for task in range(5) for env_id in ids]
    assert Watched.most_busy <= 4
    for wrong in (0, Task(0, "demo-runner:Third-v0", 0)):
        with pytest.raises(ValueError, match=r"this runner plays demo-runner:Watched-v0, demo-runner:Other-v0"):
            play(one.run(babbler, wrong))
    one.close()


def test_each_episode_may_have_its_own_policy(runner: Run, words: Any) -> None:
    prompts: dict[str, list[list[int]]] = {"first": [], "second": []}

    def listening(name: str) -> Any:
        async def policy(prompt: list[int]) -> Completion:
            prompts[name].append(prompt)
            return await Babbler(words)(prompt)

        return policy

    one = runner().runner

    async def main() -> None:
        await asyncio.gather(one.run(listening("first"), 0), one.run(listening("second"), 1))

    play(main())
    assert len(prompts["first"]) == len(prompts["second"]) == 3


# -- concurrency -------------------------------------------------------------------------------------------------------


def test_blocking_environments_block_neither_the_loop_nor_each_other(runner: Run) -> None:
    opened = threading.Event()

    class Blocks(Watched):
        def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
            self._enter()
            assert opened.wait(120)
            self._leave()
            return super().reset(seed=seed)

    gem_core.register("demo-runner:Blocks-v0", Blocks)
    one = runner("demo-runner:Blocks-v0", max_concurrent=16)

    async def main() -> list[Episode]:
        playing = asyncio.ensure_future(one.run_all(range(16)))
        while Watched.busy < 16:
            await asyncio.sleep(0.005)
        opened.set()
        return await playing

    assert len(play(main())) == 16


@pytest.mark.uncertain("environments that take 10 ms must overlap")
@pytest.mark.parametrize("limit", [1, 3])
def test_no_more_than_so_many_at_once(runner: Run, limit: int) -> None:
    episodes = play(runner(seconds=0.01, max_concurrent=limit).run_all(range(7)))
    assert len(episodes) == 7
    assert Watched.most_busy == Watched.most_alive == limit


def test_a_runner_serves_one_loop_after_another(runner: Run) -> None:
    # As a trainer does that is not asynchronous itself, and calls asyncio.run for each batch.
    one = runner(max_concurrent=2)
    first = play(one.run_all(range(6)))
    assert as_bytes(play(one.run_all(range(6)))) == as_bytes(first)


def test_an_environment_keeps_its_thread(runner: Run) -> None:
    # Connections and browsers often belong to the thread that opened them.
    play(runner(seconds=0.002).run_all(range(12)))
    assert [len(threads) for threads in Watched.threads.values()] == [1] * len(Watched.threads)


# -- ends --------------------------------------------------------------------------------------------------------------


def failing(words: PreTrainedTokenizerFast, after: int, error: BaseException) -> Any:
    """A policy that raises in its call number `after`."""
    babbler, calls = Babbler(words), [0]

    async def policy(prompt: list[int]) -> Completion:
        calls[0] += 1
        if calls[0] == after:
            raise error
        return await babbler(prompt)

    return policy


@pytest.mark.parametrize("after", [1, 4, 9])
def test_what_the_policy_raises_passes_through_and_leaves_nothing(runner: Run, words: Any, after: int) -> None:
    one = runner(policy=failing(words, after, ConnectionError("engine away")), seconds=0.01)
    with pytest.raises(ConnectionError, match="engine away"):
        play(one.run_all(range(8)))


def test_a_policy_that_breaks_its_contract_is_named(runner: Run) -> None:
    async def silent(prompt: list[int]) -> Completion:
        return Completion([])

    with pytest.raises(PolicyError, match="without any token"):
        play(runner(policy=silent).run(0))


@pytest.mark.parametrize("wait", [0.0, 0.02, 0.06, 0.11, 0.16])
def test_a_cancelled_episode_leaves_its_environment_to_the_next(runner: Run, wait: float) -> None:
    # At 50 ms a call this cancels before the start, while it is built, reset and stepped.
    one = runner(seconds=0.05, max_concurrent=1)

    async def main() -> Episode | None:
        playing = asyncio.ensure_future(one.run(0))
        await asyncio.sleep(wait)
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await playing
        return await one.run(1)

    assert as_bytes([play(main())]) == as_bytes([play(runner().run(1))])
    one.close()


def test_a_timeout_around_many_closes_all(runner: Run) -> None:
    one = runner(seconds=0.03, turns=100, max_concurrent=4)

    async def main() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(one.run_all(range(10)), 0.2)

    play(main())


def test_an_impatient_caller_leaks_nothing(runner: Run) -> None:
    one = runner(seconds=0.1)

    async def main() -> None:
        playing = asyncio.ensure_future(one.run(0))
        await asyncio.sleep(0.02)
        for _ in range(3):
            playing.cancel()
            await asyncio.sleep(0.005)
        with pytest.raises(asyncio.CancelledError):
            await playing

    asyncio.run(main())
    one.close()
    assert len(Watched.alive) == 0


def test_a_place_is_free_again_after_a_cancellation(runner: Run) -> None:
    one = runner(seconds=0.02, max_concurrent=1)

    async def main() -> Episode | None:
        playing = asyncio.ensure_future(one.run(0))
        await asyncio.sleep(0.03)
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)
        return await asyncio.wait_for(one.run(1), 120)

    assert play(main()).slot == 1


def test_a_closed_runner_plays_no_more(runner: Run) -> None:
    one = runner()
    play(one.run(0))
    one.close()
    one.close()
    with pytest.raises(ClosedError):
        play(one.run(1))


def test_listeners_hear_the_run_its_episodes_and_its_end_once(runner: Run) -> None:
    heard: list[Any] = []

    class Listener:
        @hookimpl
        def gem_rollout_start(self, run: Any) -> None:
            heard.append(("start", run.env_ids))

        @hookimpl
        def gem_episode_end(self, episode: Episode) -> None:
            heard.append(episode.slot)

        @hookimpl
        def gem_rollout_end(self, error: BaseException | None) -> None:
            heard.append(("end", error))

    listener, error = Listener(), RuntimeError("stopped")
    manager.register(listener)
    try:
        one = runner()
        play(one.run_all([4, 5]))
        one.close(error)
        one.close()
    finally:
        manager.unregister(listener)
    assert heard[0] == ("start", ["demo-runner:Watched-v0"])
    assert sorted(heard[1:-1]) == [4, 5]
    assert heard[-1] == ("end", error)


# -- failures that others cause ----------------------------------------------------------------------------------------


@pytest.mark.uncertain("well-behaved code must answer within a second or two")
def test_a_hanging_environment_costs_only_its_episode(runner: Run) -> None:
    class Hangs(Watched):
        def step(self, action: str) -> Any:
            if self.seed == derive_seed(SEED, 1):
                assert Hangs.over.wait(120)
            return super().step(action)

        over: ClassVar[threading.Event] = threading.Event()

    gem_core.register("demo-runner:Hangs-v0", Hangs)
    one = runner("demo-runner:Hangs-v0", failures=FailurePolicy(timeout=1))
    episodes = play(one.run_all(range(4)))
    assert [episode.error for episode in episodes] == [None, "TimeoutError: no answer within 1 s", None, None]
    assert len(episodes[1].turns) == 1
    Hangs.over.set()
    assert play(one.run(5)).error is None


def test_a_retry_is_not_noticed(runner: Run) -> None:
    tried: list[int] = []

    class FailsOnce(Watched):
        def step(self, action: str) -> Any:
            if self.left == 2 and self.seed not in tried:
                tried.append(self.seed or 0)
                raise OSError("gone")
            return super().step(action)

    gem_core.register("demo-runner:FailsOnce-v0", FailsOnce)
    episodes = play(runner("demo-runner:FailsOnce-v0", failures=FailurePolicy(retries=1)).run_all(range(4)))
    assert len(tried) == 4
    healthy = play(runner().run_all(range(4)))
    assert [episode.turns for episode in episodes] == [episode.turns for episode in healthy]


def test_a_runner_plays_in_processes_that_may_die(chatml: PreTrainedTokenizerFast) -> None:
    gem_core.register("demo-runner:Mortal-v0", Mortal)
    dying = [derive_seed(SEED, 1)]
    play_in: dict[str, list[Episode]] = {}
    for backend in ("sync", "process"):
        one = EpisodeRunner(
            "demo-runner:Mortal-v0",
            chatml,
            SETTINGS,
            seed=SEED,
            max_concurrent=4,
            backend=backend,  # type: ignore[arg-type]
            workers=1 if backend == "process" else None,
            env_kwargs={"dying": dying if backend == "process" else []},
        )
        play_in[backend] = play(one.run_all(Babbler(chatml, slow=True), range(6)))
        one.close()
    died = play_in["process"].pop(1)
    assert "SIGKILL" in (died.error or "")
    play_in["sync"].pop(1)
    assert as_bytes(play_in["process"]) == as_bytes(play_in["sync"])


class Mortal(Env):
    """Kills its process in the second turn of the episodes with the seeds given."""

    def __init__(self, dying: Sequence[int] = ()) -> None:
        self.dying = tuple(dying)

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.seed, self.turn = seed, 0
        return f"go {self.rng.randint(0, 9)}", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.turn += 1
        if self.turn == 2 and self.seed in self.dying:
            os.kill(os.getpid(), signal.SIGKILL)
        return f"on {self.rng.randint(0, 9)}", 1.0, self.turn == 3, False, {}

    def sample_random_action(self) -> str:
        return ""


def test_closing_ends_what_is_under_way(runner: Run) -> None:
    one = runner(seconds=0.05, turns=1000)

    async def main() -> list[Any]:
        playing = asyncio.gather(*[one.run(task) for task in range(3)], return_exceptions=True)
        await asyncio.sleep(0.2)
        await asyncio.get_running_loop().run_in_executor(None, one.close)
        return await playing

    assert all(isinstance(error, ClosedError) for error in play(main()))
