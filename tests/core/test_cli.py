"""The command line: in process where that says enough, the real console script where it does not."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import gem_core
from gem_commands import _listing as listing
from gem_commands._doctor import examine
from gem_core import Env
from gem_core.cli import parse_settings
from gem_core.cli._app import app
from gem_core.cli._terminal import printable, say
from gem_core.installation import install_line
from gem_core.plugins import manager
from gem_core.specs import AdapterSpec, EnvSpec
from gem_support.console import console
from gem_support.waiting import wait_until

VERSION = importlib.metadata.version("gem-core")
SCRIPT = Path(sys.executable).with_name("gem-core")
RUDE = "[bold]x[/bold] [/] \x1b[31mred\x00 \ud800 \u202eabc [link=x]\r\n"


def run(*args: str, input: str | bytes | None = "") -> Any:
    return CliRunner().invoke(app, list(args), input=input)


def script(*args: str, site: str, **env: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **env, "PYTHONPATH": site}
    return subprocess.run([SCRIPT, *args], input="", capture_output=True, text=True, timeout=240, env=env)


# -- help, version, errors ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("args", [(), ("--help",), ("-h",)])
def test_help_lists_the_commands(args: tuple[str, ...]) -> None:
    result = run(*args)
    assert result.exit_code == 0
    assert {"list", "play", "doctor"} <= set(result.stdout.split())


def test_version() -> None:
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"gem-core {VERSION}\n")


@pytest.mark.parametrize("args", [("frobnicate",), ("list", "--bad"), ("play",), ("play", "a:b", "--episodes", "0")])
def test_wrong_usage_exits_with_2(args: tuple[str, ...]) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert "Usage:" in result.stderr


def test_unknown_command_shows_near_match() -> None:
    assert "Did you mean 'doctor'?" in run("docter").stderr
    assert "Did you mean 'eval'?" in run("evall").stderr  # a plugin's


def test_import_needs_neither_typer_nor_rich() -> None:
    code = "import sys, gem_core, gem_core.cli; print([m for m in ('typer', 'rich', 'click') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


# -- text --------------------------------------------------------------------------------------------------------------


def test_printable_keeps_text_and_escapes_what_drives_a_terminal() -> None:
    kept = "tab\t, newline\n, [markup], été 猫 👩‍🚀"
    assert printable(kept) == kept
    assert printable(RUDE) == "[bold]x[/bold] [/] \\x1b[31mred\\x00 \\ud800 \\u202eabc [link=x]\n"
    assert printable("a\rb\x9bc\x7f") == "a\\rb\\x9bc\\x7f"


def test_say_colours_nothing_where_no_color_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    coloured = typer.Typer()
    coloured.command()(lambda: say("word", fg="red"))
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert CliRunner().invoke(coloured, color=True).stdout == "\x1b[31mword\x1b[0m\n"
    monkeypatch.setenv("NO_COLOR", "1")
    assert CliRunner().invoke(coloured, color=True).stdout == "word\n"


# -- list --------------------------------------------------------------------------------------------------------------


def listed(*args: str) -> list[str]:
    result = run("list", "--json", *args)
    assert result.exit_code == 0
    return [row["id"] for row in json.loads(result.stdout)["environments"]]


def test_list_shows_a_row_per_environment() -> None:
    result = run("list", "GuessTheNumber-v0-easy")
    assert result.exit_code == 0
    row = next(line for line in result.stdout.splitlines() if line.startswith("game:"))
    assert re.split(r"  +", row.strip()) == [
        "game:GuessTheNumber-v0-easy",
        "game",
        "gem-core",
        VERSION,
        "ok",
        "game, multi-turn",
    ]


def test_list_json() -> None:
    document = json.loads(run("list", "--json").stdout)
    corridor = next(row for row in document["environments"] if row["id"] == "game:Corridor-v0")
    assert corridor == {
        "id": "game:Corridor-v0",
        "plugin": "game",
        "distribution": "gem-core",
        "version": VERSION,
        "status": "ok",
        "needs": None,
        "install": None,
        "tags": ["game", "multi-turn", "tiny", "bare"],
    }
    game = next(row for row in document["plugins"] if row["plugin"] == "game")
    assert (game["status"], game["error"]) == ("ok", None)


def test_list_filters() -> None:
    assert {"game:Corridor-v0", "game:GuessTheNumber-v0"} <= set(listed())
    assert listed("corridor") == ["game:Corridor-v0"]
    assert listed("game:*-easy") == [one for one in listed("easy") if one.startswith("game:")] != []
    assert listed("*easy?") == []
    assert listed("--tag", "tiny", "--tag", "game") == ["game:Corridor-v0"]
    assert listed("--tag", "tiny", "--tag", "nothing") == []


def test_list_shows_an_id_that_is_found_on_demand(site: str) -> None:
    found = console("list", "cave:Square-7", site=site)
    assert re.search(r"cave:Square-7 +cave +cave +1.5 +ok", found.stdout)
    missing = console("list", "cave:Square-x", site=site)
    assert missing.stdout.startswith("Nothing matches. mazes have a size\n")


def test_list_of_nothing_shows_near_match() -> None:
    result = run("list", "game:Coridor-v0")
    assert result.exit_code == 0
    assert "Nothing matches. Did you mean 'game:Corridor-v0'" in result.stdout


def test_list_shows_estimators_and_what_they_need() -> None:
    found = json.loads(run("list", "--json", "--tag", "needs-groups").stdout)
    assert [row["id"] for row in found["estimators"]] == ["drgrpo", "gigpo", "grpo", "rloo", "turn_grpo"]
    assert found["environments"] == found["tools"] == []
    assert "Estimators" in run("list", "rebn").stdout.splitlines()


def test_list_says_which_extra_is_missing_and_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "missing_from", lambda extra, _: ["solver"] if extra == "solvers" else [])
    manager.add("gem_envs", EnvSpec("clitest:Needy-v0", Rude, extra="solvers"))
    manager.add("gem_envs", EnvSpec("clitest:Fine-v0", Rude, extra="data"))
    rows = {line.split()[0]: line for line in run("list", "clitest:").stdout.splitlines() if line}
    assert " needs [solvers] " in rows["clitest:Needy-v0"]
    assert " ok " in rows["clitest:Fine-v0"]
    assert rows["needs"] == f"needs [solvers]: {install_line('solvers')}"
    [row] = json.loads(run("list", "--json", "clitest:Needy").stdout)["environments"]
    assert (row["needs"], row["install"]) == ("solvers", install_line("solvers"))


def test_list_shows_what_this_process_registered() -> None:
    gem_core.register("clitest:Rude-v0", Rude, tags=("[/]", "\x1b[2J"))
    result = run("list", "clitest:")
    assert result.exit_code == 0
    assert "<in-process>" in result.stdout
    assert "[/], \\x1b[2J" in result.stdout


# -- play --------------------------------------------------------------------------------------------------------------


class Rude(Env):
    """Says things that a terminal must not act upon, and knows if it was closed."""

    closed = False

    def __init__(self, raising: str = "", ends: bool = True) -> None:
        self.raising, self.ends = raising, ends
        Rude.closed = False

    def reset(self, seed: int | None = None, **options: Any) -> Any:
        super().reset(seed=seed)
        return RUDE, {"prefix": "before ", "suffix": "after"}

    def step(self, action: str) -> Any:
        if self.raising == "interrupt":
            raise KeyboardInterrupt
        if self.raising:
            raise RuntimeError(f"{self.raising}\x1b[31m\nsecond line")
        return f"you said {action}", 0.5, self.ends, self.ends, {"invalid_action": True}

    def sample_random_action(self) -> str:
        return RUDE

    def render(self) -> str:
        return "image \x1b"

    def close(self) -> None:
        Rude.closed = True


@pytest.fixture
def rude() -> str:
    gem_core.register("clitest:Rude-v0", Rude)
    return "clitest:Rude-v0"


def test_play_random_is_reproducible() -> None:
    args = ("play", "game:GuessTheNumber-v0-easy", "--random", "--seed", "3", "--episodes", "3")
    first, second = run(*args), run(*args)
    assert first.exit_code == 0
    assert first.stdout == second.stdout
    assert "turn 1> \\boxed{" in first.stdout
    assert re.search(
        r"Episode 1: (terminated|terminated and truncated) after \d turns?, return .*success (yes|no)", first.stdout
    )
    assert re.search(r"Finished episodes: 3, mean return \S+, success \d of 3", first.stdout)
    assert run(*args[:-3], "4", *args[-2:]).stdout != first.stdout


def test_play_asks_the_row_of_a_data_set(rude: str) -> None:
    args = ("play", "qa:Sample", "--seed", "0", "--data-index")
    shown = [run(*args, index, input="").stdout for index in ("0", "1", "0")]
    assert shown[0] == shown[2] != shown[1]
    refused = run("play", rude, "--data-index", "0")
    assert refused.exit_code == 1
    assert "data_index" in refused.stderr


def test_play_by_a_person() -> None:
    opening = run("play", "game:Corridor-v0", "--seed", "0").stdout.splitlines()[0]
    move = ">" if opening.index("@") < opening.index("G") else "<"
    steps = abs(opening.index("@") - opening.index("G"))
    result = run("play", "game:Corridor-v0", "--seed", "0", input="sideways\n" + f"{move}\n" * steps)
    assert result.exit_code == 0
    assert f"turn 1> sideways\n{opening}\nreward -0.1 (invalid action)\n" in result.stdout
    assert result.stdout.count(opening) == 2  # render() says nothing that the observation did not
    assert f"Episode 1: terminated after {steps + 1} turns, return 0.9, success yes\n" in result.stdout


def test_play_ends_with_its_input(rude: str) -> None:
    result = run("play", rude, "--set", "ends=false", "--episodes", "3", input="one\ntwo")
    assert result.exit_code == 0
    assert (
        "turn 3> \nEnd of input.\nEpisode 1: not finished after 2 turns, return 1, success unknown\n" in result.stdout
    )
    assert "Episode 2" not in result.stdout
    assert Rude.closed


def test_play_shows_text_literally(rude: str) -> None:
    result = run("play", rude, "--random")
    assert result.exit_code == 0
    assert f"before {printable(RUDE)}after\nimage \\x1b\nturn 1> {printable(RUDE)}" in result.stdout
    assert "terminated and truncated after 1 turn, return 0.5, success unknown" in result.stdout
    assert not set("\x1b\x00\u202e") & set(result.stdout)


def test_play_survives_any_bytes(rude: str) -> None:
    done = subprocess.run(
        [SCRIPT, "play", "game:Corridor-v0"], input=b"\xff\x00\x1b\n", capture_output=True, timeout=240
    )
    assert done.returncode == 0
    assert b"\x1b" not in done.stdout


def test_play_unknown_id() -> None:
    result = run("play", "game:GuessTheNumber-v0-esy")
    assert result.exit_code == 1
    assert result.stderr.startswith(
        "Error: no environment 'game:GuessTheNumber-v0-esy'. Did you mean 'game:GuessTheNumber-v0-easy'"
    )
    assert "Traceback" not in result.output


def test_play_settings() -> None:
    result = run("play", "game:Corridor-v0", "--random", "--set", "length=3", "--set", "max_turns=2")
    assert len(result.stdout.splitlines()[0]) == 3
    wrong = run("play", "game:Corridor-v0", "--set", "lenght=3")
    assert wrong.exit_code == 1
    assert "Did you mean 'length'?" in wrong.stderr
    assert run("play", "game:Corridor-v0", "--set", "env_id=3").exit_code == 1
    assert run("play", "game:Corridor-v0", "--set", "length=1").exit_code == 1
    assert run("play", "game:Corridor-v0", "--set", "length").exit_code == 2


def test_settings_are_json_python_or_text() -> None:
    given = [
        "a=1",
        "b=true",
        "c=True",
        "d=null",
        "e=None",
        "f=[1, 2]",
        "g=(1, 2)",
        'h="1"',
        "i=a=b",
        "j=",
        "k=" + "[" * 9999,
    ]
    expected = {
        "a": 1,
        "b": True,
        "c": True,
        "d": None,
        "e": None,
        "f": [1, 2],
        "g": (1, 2),
        "h": "1",
        "i": "a=b",
        "j": "",
    }
    assert parse_settings(given) == {**expected, "k": "[" * 9999}


def test_play_names_what_an_environment_raises(rude: str) -> None:
    result = run("play", rude, "--random", "--set", "raising=boom")
    assert result.exit_code == 1
    assert re.fullmatch(
        r"Error: clitest:Rude-v0 failed: RuntimeError: boom\\x1b\[31m \(\S+test_cli.py:\d+\)\n", result.stderr
    )
    assert Rude.closed


def test_play_interrupted(rude: str) -> None:
    result = run("play", rude, "--random", "--set", "raising=interrupt")
    assert result.exit_code == 130
    assert result.stdout.endswith("\nInterrupted.\n")
    assert Rude.closed


def test_play_interrupted_by_a_person() -> None:
    with subprocess.Popen(
        [SCRIPT, "play", "game:Corridor-v0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        shown = b""
        while b"turn 1>" not in shown:
            shown += os.read(process.stdout.fileno(), 1000) or pytest.fail("it ended")
        # Until it reads: it sleeps.
        wait_until(lambda: Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "S")
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=240)
    assert (process.returncode, output, errors) == (130, b"\nInterrupted.\n", b"")


def test_reader_that_goes_away_is_no_failure() -> None:
    command = f"{SCRIPT} play game:Corridor-v0 --random --episodes 2000 | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=240)
    assert (len(done.stdout.splitlines()), done.stderr) == (1, "")


# -- doctor ------------------------------------------------------------------------------------------------------------


def test_doctor() -> None:
    result = run("doctor")
    assert result.exit_code == 0
    for title in ("Installation", "Training frameworks", "Plugins", "Capabilities", "Isolation", "Accelerator"):
        assert title in result.stdout.splitlines()


def test_doctor_json_without_importing_torch() -> None:
    code = "import sys; from gem_commands._doctor import examine; examine(True); sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert set(document) == {"installation", "frameworks", "plugins", "capabilities", "isolations", "accelerator"}
    isolations = {isolation["holds"] for isolation in document["isolations"]}
    assert {"processes that a run leaves behind", "programs that a policy wrote"} <= isolations
    assert {"environments", "answers while they are graded"} <= isolations
    assert {"bubblewrap", "seccomp"} <= {capability["name"] for capability in document["capabilities"]}


def test_doctor_says_what_to_install(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from gem_core.plugins import Registration
    from gem_core.specs import Provenance

    specs = [
        AdapterSpec("fits", "x", distribution="pytest", supported=">=1", extra="fits"),
        AdapterSpec("old", "x", distribution="pytest", supported=">=999", extra="old"),
        AdapterSpec("absent", "x", distribution="no-such-framework", supported=">=1,<2"),
        AdapterSpec("nonsense", "x", distribution="pytest", supported="newest"),
    ]
    here = Provenance("demo", "demo", "1")
    monkeypatch.setattr(manager, "all_registrations", lambda hook: [Registration(spec, here) for spec in specs])  # pyright: ignore
    assert examine(True)
    rows = json.loads(capsys.readouterr().out)["frameworks"]
    assert [row["status"] for row in rows] == ["ok", "unsupported", "not installed", "broken"]
    advice = [None, install_line("old"), 'pip install "no-such-framework>=1,<2"']
    assert [row["next"] for row in rows[:3]] == advice
    assert "newest" in rows[3]["next"]


# -- plugins -----------------------------------------------------------------------------------------------------------

GOOD = """
import sys
print("maze_one was imported", file=sys.stderr)
import typer
from gem_core import EnvSpec, hookimpl

@hookimpl
def gem_envs():
    yield EnvSpec("maze:Small-v0", "maze_one:Maze")
    yield EnvSpec("maze:Big-v0", "maze_one:Maze")

def draw(size: int = 3):
    "Draw a maze [/]."
    print("#" * size)

def impossible(what: "no_such_type"): ...

tools = typer.Typer()
tools.command("count")(lambda: print("one"))
tools.command("sum")(lambda: print("two"))
"""
COMMANDS = """[gem_core.commands]
draw-maze = maze_one:draw
list = maze_one:draw
impossible = maze_one:impossible
maze-tools = maze_one:tools
"""
OTHER = """
from gem_core import EnvSpec, hookimpl

@hookimpl
def gem_envs():
    return [EnvSpec("maze:Small-v0", "maze_two:Maze")]

"""

ON_DEMAND = """
from gem_core import EnvSpec, hookimpl
from gem_core.errors import NotFoundError

@hookimpl
def gem_find_env(env_id):
    if env_id.endswith("x"):
        raise NotFoundError("mazes have a size")
    return EnvSpec(env_id, "cave:Maze")
"""


NEEDY = """
from gem_core import EnvSpec, hookimpl

@hookimpl
def gem_envs():
    yield EnvSpec("{0}:Drawn-v0", "{0}:Maze", extra="render")
"""


def install(
    folder: Path, distribution: str, plugin: str, source: str, commands: str = "", requires: str = "gem-core"
) -> None:
    (folder / f"{distribution}.py").write_text(source)
    info = folder / f"{distribution}-1.5.dist-info"
    info.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.5\nRequires-Dist: {requires}\n"
    (info / "METADATA").write_text(metadata)
    (info / "entry_points.txt").write_text(f"[gem_core.plugins]\n{plugin} = {distribution}\n{commands}")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("site")
    install(folder, "maze_one", "maze", GOOD, COMMANDS)
    install(folder, "maze_two", "maze", OTHER)
    broken = "[gem_core.commands]\nsink = wreck:sink\n"
    install(folder, "wreck", "wreck", "raise ValueError('[/] \\x1b[31m boom\\nsecond line')", broken)
    install(folder, "cave", "cave", ON_DEMAND)
    install(folder, "sleeper", "sleeper", "raise SystemExit")
    return str(folder)


@pytest.fixture
def plugin_env(site: str) -> dict[str, str]:
    return {"site": site, "GEM_DISABLE_PLUGINS": "sleeper"}


def test_list_isolates_broken_plugins(plugin_env: dict[str, str]) -> None:
    done = console("list", **plugin_env)
    assert done.returncode == 0
    assert "game:Corridor-v0" in done.stdout
    duplicates = [line.split()[2:5] for line in done.stdout.splitlines() if line.startswith("maze:Small-v0")]
    assert duplicates == [["maze_one", "1.5", "duplicate"], ["maze_two", "1.5", "duplicate"]]
    left_out = done.stdout.partition("Plugins left out")[2]
    assert re.search(r"wreck +wreck +1.5 +broken +.*ValueError: \[/\] \\x1b\[31m boom", left_out)
    assert re.search(r"sleeper +sleeper +1.5 +disabled +named in GEM_DISABLE_PLUGINS", left_out)
    assert "second line" not in done.stdout
    # A plugin that loads slowly on a busy machine is named.
    lines = [line for line in done.stderr.splitlines() if not line.startswith("Still loading")]
    assert lines == ["maze_one was imported"]


def test_list_names_the_extra_of_each_distribution(tmp_path: Path) -> None:
    for name in ("forest", "river"):
        install(tmp_path, name, name, NEEDY.format(name), requires=f"no-such-{name}; extra == 'render'")
    listed = console("list", ":Drawn-v0", site=tmp_path).stdout
    assert re.search(r"forest:Drawn-v0 +forest +forest +1.5 +needs \[render\]", listed)
    assert 'needs [render]: pip install "forest[render]"\nneeds [render]: pip install "river[render]"\n' in listed
    rows = json.loads(console("list", "--json", "river:", site=tmp_path).stdout)["environments"]
    assert [(row["needs"], row["install"]) for row in rows] == [("render", 'pip install "river[render]"')]


def test_json_has_the_errors(plugin_env: dict[str, str]) -> None:
    document = json.loads(console("list", "--json", **plugin_env).stdout)
    status = {(row["plugin"], row["distribution"]): row["status"] for row in document["plugins"]}
    assert status["wreck", "wreck"] == "broken"
    assert status["sleeper", "sleeper"] == "disabled"
    assert next(row["error"] for row in document["plugins"] if row["plugin"] == "wreck").endswith("second line")


def test_doctor_fails_for_a_broken_plugin(plugin_env: dict[str, str]) -> None:
    done = script("doctor", **plugin_env)
    assert done.returncode == 1
    assert re.search(r"wreck +wreck +1.5 +broken", done.stdout)
    assert "Traceback" not in done.stderr


def test_strict_plugins_are_an_error(plugin_env: dict[str, str]) -> None:
    done = console("list", GEM_STRICT_PLUGINS="1", **plugin_env)
    assert done.returncode == 1
    assert re.search(
        r"Error: wreck 1.5 \(plugin 'wreck'\): importing 'wreck' failed at \S+wreck.py:1: ValueError", done.stderr
    )
    assert "Traceback" not in done.stderr


def test_duplicate_id_is_an_error(plugin_env: dict[str, str]) -> None:
    done = console("play", "maze:Small-v0", **plugin_env)
    assert done.returncode == 1
    assert re.search(r"Error: 'maze:Small-v0' is claimed by .* and ", done.stderr)


def test_missing_module_is_an_error_with_advice(plugin_env: dict[str, str]) -> None:
    done = console("play", "wreck:X-v0", **plugin_env)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: no environment 'wreck:X-v0': wreck 1.5 (plugin 'wreck') is broken:")


def test_plugin_commands_run(plugin_env: dict[str, str]) -> None:
    done = script("draw-maze", "--size", "5", **plugin_env)
    assert (done.returncode, done.stdout) == (0, "#####\n")
    assert done.stderr == "maze_one was imported\n", "no other plugin was loaded"


def test_a_command_that_cannot_be_loaded_is_an_error(plugin_env: dict[str, str]) -> None:
    done = console("sink", **plugin_env)
    assert done.returncode == 1
    assert re.search(r"^Error: wreck 1.5 \(plugin 'sink'\): importing 'wreck:sink' failed at .*ValueError", done.stderr)
    done = console("impossible", **plugin_env)
    assert done.returncode == 1
    assert "Error: maze_one 1.5 (plugin 'impossible'): NameError: name 'no_such_type' is not defined" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_other_distribution_takes_the_place_of_our_command(tmp_path: Path) -> None:
    install(tmp_path, "thief", "thief", "def check(): print('stolen')", "[gem_core.commands]\ncheck = thief:check\n")
    assert "Check an environment, a tool" in console("check", "--help", site=tmp_path).stdout


def test_an_app_of_one_command_is_that_command_and_other_objects_are_refused(tmp_path: Path) -> None:
    source = (
        "import typer\napp = typer.Typer()\n@app.command()\ndef only(size: int):\n  'Draws [/red].'\n  print(size)\n"
    )
    source += "thing = 3\n"
    install(tmp_path, "single", "single", source, "[gem_core.commands]\none = single:app\nodd = single:thing\n")
    assert console("one", "7", site=tmp_path).stdout == "7\n"
    assert "Draws [/red]." in console("one", "--help", site=tmp_path).stdout
    refused = console("odd", site=tmp_path)
    assert "'single:thing' is neither a function nor a typer.Typer" in refused.stderr


def test_a_disabled_command_is_none(plugin_env: dict[str, str]) -> None:
    done = console("draw-maze", **plugin_env | {"GEM_DISABLE_PLUGINS": "draw-maze"})
    assert done.returncode == 2
    assert "No such command 'draw-maze'" in done.stderr


def test_a_command_of_two_distributions_is_an_error(tmp_path: Path) -> None:
    for name in ("first", "second"):
        install(tmp_path, name, name, "def draw(): pass", f"[gem_core.commands]\ndraw = {name}:draw\n")
    done = console("draw", site=tmp_path)
    assert done.returncode == 1
    assert "Error: the command 'draw' is claimed by first 1.5 (plugin 'draw') and second 1.5" in done.stderr


def test_help_lists_plugin_commands(plugin_env: dict[str, str]) -> None:
    done = console("--help", **plugin_env)
    assert done.returncode == 0
    assert re.search(r"draw-maze +Draw a maze \[/\]\.", done.stdout)
    assert "maze-tools" in done.stdout
    assert "Warning: a plugin's command was left out: another command has the name 'list'" in done.stderr
    assert "Warning: a plugin's command was left out: maze_one 1.5 (plugin 'impossible'): NameError" in done.stderr
    assert "Warning: a plugin's command was left out: wreck 1.5 (plugin 'sink'): importing" in done.stderr
    assert console("maze-tools", "count", **plugin_env).stdout == "one\n"


@pytest.mark.parametrize("args", [("--version",), ("doctor", "--help"), ("play", "game:Corridor-v0", "--random")])
def test_built_in_commands_leave_other_plugins_alone(args: tuple[str, ...], plugin_env: dict[str, str]) -> None:
    done = console(*args, **plugin_env)
    assert (done.returncode, done.stderr) == (0, "")


LOUD = """
import sys, typer
from gem_core import hookimpl
print("loud was imported")

@hookimpl
def gem_adapters():
    print("loud was asked")
    return []
"""
QUITTING = """
import sys
from gem_core import hookimpl

@hookimpl
def gem_envs():
    sys.exit(3)
"""


UNRULY = """
import asyncio, pytest
from gem_core import hookimpl
{line}
@hookimpl
def gem_doctor(capabilities, isolations):
    capabilities.append("a shovel")
    isolations.append("a fence")
    raise asyncio.CancelledError("gone")
"""


@pytest.mark.parametrize("command", ["list", "doctor"])
def test_a_plugin_whose_import_is_skipped_ends_no_command(tmp_path: Path, command: str) -> None:
    install(tmp_path, "unruly", "unruly", UNRULY.format(line="pytest.skip('no display', allow_module_level=True)"))
    done = console(command, site=tmp_path)
    assert done.returncode == (1 if command == "doctor" else 0)
    assert re.search(r"unruly +unruly +1.5 +broken .* failed at \S+unruly.py:4: Skipped: no display", done.stdout)
    assert "Traceback" not in done.stderr


def test_a_plugin_whose_hook_is_cancelled_ends_no_command(tmp_path: Path) -> None:
    install(tmp_path, "unruly", "unruly", UNRULY.format(line=""))
    done = console("doctor", site=tmp_path)
    assert done.returncode == 0
    assert "CancelledError: gone" in done.stderr
    assert "a plugin's gem_doctor added 'a shovel', which is not a gem_core.specs.Capability" in done.stderr
    assert "a plugin's gem_doctor added 'a fence', which is not a gem_core.specs.Isolation" in done.stderr
    assert "Accelerator" in done.stdout


HANGING = """
import sys, threading
from gem_core import hookimpl
def hang():
    print("it hangs", file=sys.stderr, flush=True)
    threading.Event().wait()
{hang}
@hookimpl
def gem_doctor(capabilities):
    hang()
"""


@pytest.mark.parametrize(
    ("command", "activity"),
    [
        ("list", "loading sloth 1.5 (plugin 'sloth')"),
        ("--help", "loading sloth 1.5 (plugin 'snooze')"),
        ("doctor", "waiting for gem_doctor of plugin 'sloth (sloth)'"),
    ],
)
def test_a_plugin_that_hangs_is_named_and_can_be_interrupted(tmp_path: Path, command: str, activity: str) -> None:
    hang = "" if command == "doctor" else "hang()"
    commands = "[gem_core.commands]\nsnooze = sloth:hang\n"
    install(tmp_path, "sloth", "sloth", HANGING.format(hang=hang), commands)
    with subprocess.Popen(
        [SCRIPT, command], stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(tmp_path)}
    ) as process:
        assert process.stderr is not None
        said: list[str] = []
        # A slow machine says that it waits before the plugin hangs, and Python drops a Ctrl-C in parts of an import.
        while not ("it hangs\n" in said and any(line.startswith(f"Still {activity} ...") for line in said)):
            said.append(process.stderr.readline())
            assert said[-1], said
        process.send_signal(signal.SIGINT)
        assert f"\nInterrupted while {activity}. Set GEM_DISABLE_PLUGINS" in process.communicate(timeout=240)[1]
    assert process.returncode == 130


@pytest.mark.parametrize("command", ["list", "doctor"])
def test_a_misspelt_name_of_a_disabled_plugin_is_reported(command: str) -> None:
    done = console(command, GEM_DISABLE_PLUGINS="serach")
    assert "Warning: GEM_DISABLE_PLUGINS names 'serach', " in done.stderr
    assert "Did you mean 'search'?" in done.stderr


def test_python_runs_the_package_as_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "gem_core", "--version"], capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stdout) == (0, f"gem-core {VERSION}\n")


@pytest.mark.parametrize("command", ["list", "doctor"])
def test_what_plugins_print_is_not_among_the_json(tmp_path: Path, command: str) -> None:
    install(tmp_path, "loud", "loud", LOUD)
    done = console(command, "--json", site=tmp_path)
    assert "loud" in {row["plugin"] for row in json.loads(done.stdout)["plugins"]}
    assert "loud was imported\nloud was asked\n" in done.stderr


@pytest.mark.parametrize("command", ["list", "--help"])
def test_a_plugin_that_exits_ends_no_command(tmp_path: Path, command: str) -> None:
    commands = "[gem_core.commands]\nquit = quitter:here\n"
    install(tmp_path, "quitter", "quitter", QUITTING if command == "list" else "import sys; sys.exit(3)", commands)
    done = console(command, site=tmp_path)
    assert done.returncode == 0
    assert "game:Corridor-v0" in done.stdout if command == "list" else "doctor" in done.stdout
    assert "quitter" in done.stdout + done.stderr
