"""A plugin of a stranger: a distribution of its own, installed by pip, beside broken and rival ones."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gem_core.installation import missing_from

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"

RIVAL = """
from gem_core import EnvSpec, hookimpl

@hookimpl
def gem_envs():
    yield EnvSpec("maze:Fork-v0", "gem_rival_mazes:Fork")
"""
BROKEN = """
import sys
sys.broken_was_imported = True
raise RuntimeError("the licence server is down")
"""
FROM_THE_FUTURE = """
GEM_PLUGIN_API = ">=99"
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example in it, as pip installs it from a clone without a network."""
    folder = tmp_path_factory.mktemp("site")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(folder), str(EXAMPLE)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert result.returncode == 0, result.stderr
    return folder


def declare(folder: Path, distribution: str, namespace: str, source: str) -> None:
    """Put a distribution with one plugin module into a folder, as pip would leave it."""
    module = distribution.replace("-", "_")
    (folder / f"{module}.py").write_text(source)
    info = folder / f"{module}-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text(f"[gem_core.plugins]\n{namespace} = {module}\n")


def run(code: str, *folders: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these folders on its path."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GEM_")}
    environment |= {"PYTHONPATH": os.pathsep.join(map(str, folders)), **settings}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False, env=environment
    )


def output(code: str, *folders: Path, **settings: str) -> str:
    """What it printed, without the last newline."""
    result = run(code, *folders, **settings)
    assert result.returncode == 0, result.stderr
    return result.stdout.rstrip("\n")


def last_line(code: str, *folders: Path, **settings: str) -> str:
    """The error it ended with."""
    result = run(code, *folders, **settings)
    assert result.returncode == 1, result.stdout
    return result.stderr.rstrip("\n").splitlines()[-1]


MAKE = "import gem_core, sys; print(gem_core.make('maze:Fork-v0').reset(seed=0)[0])"
LIST = """
from gem_core.plugins import manager
for plugin in manager.load_all():
    if plugin.provenance.distribution != "gem-core":
        print(plugin.provenance, plugin.status, plugin.error, sep=" | ")
"""


# -- alone -------------------------------------------------------------------------------------------------------------


def test_its_environment_is_made_by_id(site: Path) -> None:
    assert output(MAKE, site).startswith("follow ")


def test_without_it_the_error_says_what_is_missing(tmp_path: Path) -> None:
    error = last_line(MAKE, tmp_path)
    assert error.startswith("gem_core.errors.NotFoundError: no environment 'maze:Fork-v0'.")
    assert "No plugin named 'maze' is installed" in error


def test_provenance_names_distribution_and_version(site: Path) -> None:
    code = "from gem_core.registry import provenance; print(provenance('maze:Fork-v0-long'))"
    assert output(code, site) == "gem-example-mazes 0.1.0 (plugin 'maze')"


def test_it_conforms(site: Path) -> None:
    output("from gem_testing import check_env; check_env('maze:Fork-v0'); check_env('maze:Fork-v0-long')", site)


def test_its_own_tests_pass(site: Path) -> None:
    """With the conformance tests and the fixture that gem-core brings to pytest."""
    arguments = ["--rootdir", str(EXAMPLE), "-c", os.devnull, "-p", "no:cacheprovider", str(EXAMPLE / "tests")]
    assert " passed" in output(f"import pytest, sys; sys.exit(pytest.main({arguments!r}))", site)


def test_it_is_imported_when_asked_for_and_not_before(site: Path) -> None:
    code = """
import sys, gem_core
def loaded(): return sorted(name for name in sys.modules if name.startswith("gem_example_mazes."))
print(loaded())
gem_core.spec("maze:Fork-v0")
print(loaded())
gem_core.make("maze:Fork-v0")
print(loaded())
"""
    assert output(code, site).splitlines() == [
        "[]",
        "['gem_example_mazes.plugin']",
        "['gem_example_mazes.fork', 'gem_example_mazes.plugin']",
    ]


def test_it_plays_beside_first_party_environments_in_a_vector(site: Path) -> None:
    code = """
import gem_core
with gem_core.make_vec(["maze:Fork-v0", "game:Corridor-v0"], seed=0, backend="thread") as envs:
    print(*envs.reset()[0], sep="\\n")
"""
    maze, corridor = output(code, site).splitlines()
    assert maze.startswith("follow ")
    assert set(corridor) == set("@.G")


# -- enabled: it decides -----------------------------------------------------------------------------------------------


@pytest.fixture
def server(site: Path) -> Iterator[str]:
    """The address of a server that plays the example's maze."""
    for extra in ("serve", "remote"):
        if missing_from(extra):
            pytest.skip(f"it needs the extra {extra!r}")
    command = [sys.executable, "-m", "gem_core", "serve", "maze:Fork-v0", "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip().removeprefix("Listening at ")
        process.kill()


WHERE = """
import gem_core
from gem_core.plugins import manager
{before}
for kwargs in ({{}}, {{"forks": 2}}):
    env = gem_core.make("maze:Fork-v0", **kwargs)
    print(type(env).__name__, env.spec.id, env.reset(seed=3)[0])
    env.close()
"""


def test_it_moves_its_mazes_to_a_server_in_a_run_that_enables_it(site: Path, server: str) -> None:
    here = output(WHERE.format(before=""), site, MAZE_SERVER=server).splitlines()
    there = output(WHERE.format(before="manager.enable('maze')"), site, MAZE_SERVER=server).splitlines()
    assert [line.split()[:3] for line in here] == [["Fork", "maze:Fork-v0", "follow"]] * 2
    assert there == [here[0].replace("Fork ", "RemoteEnv ", 1), here[1]]


FAILING = """
import os
from pathlib import Path
from gem_example_mazes.fork import Fork

class Failing(Fork):
    def __init__(self, mark, dies):
        super().__init__()
        self.mark, self.dies = Path(mark), dies

    def step(self, action):
        if not self.mark.exists():
            self.mark.touch()
            os._exit(1) if self.dies else 1 / 0
        return super().step(action)
"""
FAIL = """
import gem_core
from gem_core.plugins import manager
if {enabled}:
    manager.enable("maze")
gem_core.register("demo:Failing-v0", "failing:Failing", kwargs={{"mark": {mark!r}, "dies": {dies}}})
with gem_core.make_vec("demo:Failing-v0", 1, seed=0, backend="process") as envs:
    envs.reset()
    print(envs.step(["left"])[3].tolist())
"""


@pytest.mark.parametrize(
    ("enabled", "dies", "truncated"), [(True, True, False), (True, False, True), (False, True, True)]
)
def test_it_retries_what_the_machine_did_in_a_run_that_enables_it(
    site: Path, tmp_path: Path, enabled: bool, dies: bool, truncated: bool
) -> None:
    (tmp_path / "failing.py").write_text(FAILING)
    code = FAIL.format(enabled=enabled, dies=dies, mark=str(tmp_path / "mark"))
    assert output(code, site, tmp_path) == str([truncated])


# -- beside a broken one -----------------------------------------------------------------------------------------------


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    declare(tmp_path, "gem-broken", "broken", BROKEN)
    return tmp_path


def test_a_broken_neighbour_is_not_even_imported(site: Path, broken: Path) -> None:
    code = f"{MAKE}; print(getattr(sys, 'broken_was_imported', False))"
    assert output(code, site, broken).splitlines()[1:] == ["False"]


def test_a_broken_neighbour_is_listed_with_its_error(site: Path, broken: Path) -> None:
    assert output(LIST, site, broken).splitlines() == [
        "gem-broken 2.0 (plugin 'broken') | broken | gem-broken 2.0 (plugin 'broken'): importing 'gem_broken' failed "
        f"at {broken / 'gem_broken.py'}:4: RuntimeError: the licence server is down",
        "gem-example-mazes 0.1.0 (plugin 'maze') | ok | None",
    ]


def test_a_broken_neighbour_hides_nobodys_environments(site: Path, broken: Path) -> None:
    code = (
        "from gem_core.plugins import manager; print(*(one.spec.id for one in manager.all_registrations('gem_envs')))"
    )
    ids = output(code, site, broken).split()
    assert {"maze:Fork-v0", "maze:Fork-v0-long", "game:Corridor-v0"} <= set(ids)


def test_asking_for_the_broken_one_shows_its_error(site: Path, broken: Path) -> None:
    error = last_line("import gem_core; gem_core.make('broken:Any-v0')", site, broken)
    assert error.startswith("gem_core.errors.NotFoundError: no environment 'broken:Any-v0': gem-broken 2.0")
    assert "RuntimeError: the licence server is down" in error


def test_strict_mode_raises(site: Path, broken: Path) -> None:
    error = last_line(LIST, site, broken, GEM_STRICT_PLUGINS="1")
    assert error.startswith("gem_core.errors.PluginLoadError: gem-broken 2.0 (plugin 'broken'): importing 'gem_broken'")
    assert output(MAKE, site, broken, GEM_STRICT_PLUGINS="1").startswith("follow ")


def test_a_broken_one_can_be_disabled(site: Path, broken: Path) -> None:
    lines = output(LIST, site, broken, GEM_DISABLE_PLUGINS="broken", GEM_STRICT_PLUGINS="1").splitlines()
    assert lines[0].startswith("gem-broken 2.0 (plugin 'broken') | disabled")
    assert lines[1].startswith("gem-example-mazes 0.1.0 (plugin 'maze') | ok")


# -- allowed and blocked -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{"GEM_DISABLE_PLUGINS": "other, maze"}, {"GEM_PLUGINS": "game"}], ids=str)
def test_a_plugin_that_is_not_allowed_is_not_imported(site: Path, settings: dict[str, str]) -> None:
    assert "gem-example-mazes 0.1.0 (plugin 'maze') is disabled" in last_line(MAKE, site, **settings)
    code = f"{LIST}\nimport sys; print('gem_example_mazes' in sys.modules)"
    assert output(code, site, **settings).splitlines()[-1] == "False"


def test_an_allowed_plugin_is_the_only_one(site: Path) -> None:
    assert output(MAKE, site, GEM_PLUGINS="maze").startswith("follow ")
    assert "is disabled" in last_line("import gem_core; gem_core.make('game:Corridor-v0')", site, GEM_PLUGINS="maze")


# -- beside a rival, and from the future -------------------------------------------------------------------------------


@pytest.mark.parametrize("rival_first", [True, False])
def test_two_distributions_that_claim_one_id_are_both_named(site: Path, tmp_path: Path, rival_first: bool) -> None:
    """Whichever was installed first."""
    declare(tmp_path, "gem-rival-mazes", "maze", RIVAL)
    folders = (tmp_path, site) if rival_first else (site, tmp_path)
    error = last_line(MAKE, *folders)
    assert error.startswith("gem_core.errors.DuplicateIdError: 'maze:Fork-v0' is claimed by ")
    assert "gem-example-mazes 0.1.0 (plugin 'maze')" in error
    assert "gem-rival-mazes 2.0 (plugin 'maze')" in error


def test_an_id_that_only_one_of_them_claims_still_works(site: Path, tmp_path: Path) -> None:
    declare(tmp_path, "gem-rival-mazes", "maze", RIVAL)
    assert output(MAKE.replace("Fork-v0", "Fork-v0-long"), site, tmp_path).startswith("follow ")


def test_a_plugin_for_another_api_is_refused(site: Path, tmp_path: Path) -> None:
    declare(tmp_path, "gem-future", "future", FROM_THE_FUTURE)
    error = last_line("import gem_core; gem_core.make('future:Any-v0')", site, tmp_path)
    assert "gem-future 2.0 (plugin 'future') wants plugin API '>=99', this release has 1.0" in error
    assert "Install versions of gem-core and gem-future that agree" in error
    assert output(MAKE, site, tmp_path).startswith("follow ")
