"""Settings that cannot work, or would silently change the algorithm, are refused before anything starts."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hydra.errors import ConfigCompositionException
from omegaconf import DictConfig, OmegaConf

import gem_verl
from gem_core.errors import (
    EnvError,
    EnvKwargsError,
    FrameworkVersionError,
    NotFoundError,
    PluginError,
    SettingsError,
)
from gem_core.failures import ErrorAction
from gem_core.installation import install_line
from gem_support.scripts import answer_of
from gem_verl.checks import check
from gem_verl.settings import VerlSettings

TURN = "gem.row=turn"
SEPARATE = "actor_rollout_ref.hybrid_engine=False"
DEVICES = ["actor_rollout_ref.rollout.nnodes=1", "actor_rollout_ref.rollout.n_gpus_per_node=1"]
TWO = "gem.env=[test:Babble-v0,game:Corridor-v0]"
ACTOR = "actor_rollout_ref.actor"
GAE = "algorithm.adv_estimator=gae"


@pytest.fixture
def checked(configure: Callable[..., DictConfig]) -> Callable[..., Any]:
    """A function that checks a configuration; its arguments override it."""
    return lambda *flags: check(configure(*flags))


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        # the run
        (["trainer.use_v1=False"], "trainer.use_v1=False.*Leave it out"),
        (["trainer.v1.trainer_mode=separate_async"], "separate_async.*asynchronous training is not"),
        (["trainer.total_training_steps=null"], "no epochs, so give the number of steps"),
        (["data.shuffle=True"], "data.shuffle=True.*Leave it out"),
        (["data.gen_batch_size=4"], "data.gen_batch_size=4.*Leave it out"),
        ([f"{ACTOR}.ppo_mini_batch_size=3"], f"train_batch_size=8 is not a multiple of {ACTOR}.ppo_mini_batch_size=3"),
        (["critic.ppo_mini_batch_size=16"], "not a multiple of critic.ppo_mini_batch_size=16"),
        # the section gem
        ([TWO, "gem.env_weights=[1]"], "give each environment one weight above 0"),
        (["gem.env_weights=[1,2]"], r"gem.env_weights=\[1.0, 2.0\] for gem.env=\['test:Babble-v0'\]"),
        ([TWO, "gem.env_weights=[1,0]"], "one weight above 0"),
        ([TWO, "gem.env_weights=[1,-1]"], "one weight above 0"),
        (["gem.env=[test:Babble-v0,test:Babble-v0]", "gem.env_weights=[1,2]"], "name each once"),
        (["gem.max_response_tokens=257"], "257 is more than data.max_response_length=256"),
        (["gem.max_response_tokens=0"], "gem.max_response_tokens=0: Expected `int` >= 1"),
        (["gem.history=1"], "gem.history=1 drops.*Use gem.row=turn, or leave gem.history out"),
        ([TURN, "gem.history=0"], "gem.history=0: Expected `int` >= 1"),
        (
            ["gem.vector_backend=sync", "gem.env_timeout=5"],
            "cannot enforce gem.env_timeout=5.0; use gem.vector_backend=process",
        ),
        (["algorithm.gamma=1.5"], "algorithm.gamma=1.5: Expected `float` <= 1.0"),
        (["algorithm.gamma=-0.1"], "algorithm.gamma=-0.1: Expected `float` >= 0.0"),
        (["gem.env_timeout=0"], "gem.env_timeout=0: Expected `float` > 0"),
        (["gem.env_retries=-1"], "gem.env_retries=-1: Expected `int` >= 0"),
        (["gem.max_env_failure_share=1.5"], "gem.max_env_failure_share=1.5: Expected `float` < 1.0"),
        (["gem.vector_workers=0"], "gem.vector_workers=0"),
        (["gem.max_concurrent=0"], "gem.max_concurrent=0"),
        ([TWO, "gem.max_concurrent=1"], "2 environment ids for 1 slots"),
        (["gem.vector_backend=sync", "gem.vector_workers=2"], "gem.vector_workers=2 has no effect"),
        # values of the wrong type
        (["gem.env=5"], "gem.env=5: Expected `list`, got `int`"),
        (["gem.row=step"], "gem.row=step is not one of episode, turn"),
        (["gem.env_failure=retry"], "gem.env_failure=retry is not one of truncate, drop, raise"),
        (["gem.vector_backend=threads"], "no vector backend 'threads'. Did you mean"),
        (["gem.seed=one"], "gem.seed=one: Expected `int`, got `str`"),
        (["gem.env_kwargs=raise_every"], "gem.env_kwargs=raise_every: .* is not a JSON object"),
        (["gem.truncated_is_invalid=3"], "gem.truncated_is_invalid=3: Expected `bool`, got `int`"),
        # settings that verl has
        (["gem.gamma=0.9"], "gem.gamma cannot be set here. Use algorithm.gamma"),
        (["gem.advantage=grpo"], "gem.advantage cannot be set here. Use algorithm.adv_estimator"),
        # groups and values
        (["algorithm.adv_estimator=grpo"], "rollout.n=1 cannot work. Use at least 2, or .* rebn"),
        (["algorithm.adv_estimator=rloo"], "compares the episodes of a task"),
        (["algorithm.adv_estimator=gae", "critic.enable=False"], "needs values; leave critic.enable out"),
        (["critic.enable=True"], "rebn does not use values; leave critic.enable out"),
        # the loss
        ([f"{ACTOR}.loss_agg_mode=seq-mean-token-mean"], "own length.*silently change.*Use one of .*token-mean"),
        ([f"{ACTOR}.loss_scale_factor=null"], "not a constant divisor.*silently change"),
        (["reward.reward_model.enable=True"], "replace the rewards of the environments. Leave it out"),
        (["gem.max_staleness=3", f"{ACTOR}.ppo_mini_batch_size=2"], "max_staleness=3 is less than the 4 updates"),
        (["gem.max_staleness=2", f"{ACTOR}.ppo_epochs=3"], "max_staleness=2 is less than the 3 updates"),
        (["distillation.enabled=True"], "replaces the loss"),
        ([f"{ACTOR}.policy_loss.loss_mode=gspo"], "loss_mode=gspo treats all turns.*Use gem.row=turn"),
        ([f"{ACTOR}.policy_loss.loss_mode=geo_mean"], "geo_mean is not known to weight all tokens equally"),
        ([TURN, f"{ACTOR}.policy_loss.loss_mode=sapo"], "sapo is not known to weight all tokens equally"),
        ([f"{ACTOR}.loss_scale_factor=0"], "loss_scale_factor=0 is not a constant divisor"),
        ([TURN, "algorithm.filter_groups.enable=True"], "with actor_rollout_ref.rollout.n=1 a group is one episode"),
        (["data.train_files=/data/train.parquet"], "train_files=/data/train.parquet.*environments, not from files"),
        (["data.val_files=train"], "data.val_files=train cannot be used"),
        (["data.train_max_samples=100"], "environments never run out of tasks"),
        (["critic.loss_agg_mode=seq-mean-token-mean"], "one value per turn"),
        (["algorithm.rollout_correction.rollout_rs=[token_k1,seq_mean_k1]"], "treats all turns"),
        (["data.train_batch_size=null"], "data.train_batch_size=None: a whole number of at least 1"),
        ([f"{ACTOR}.ppo_mini_batch_size=0"], "ppo_mini_batch_size=0: a whole number of at least 1"),
        (["algorithm.gamma=much"], "algorithm.gamma=much: Expected `float`, got `str`"),
        (["algorithm.lam=1.5"], "algorithm.lam=1.5: Expected `float` <= 1.0"),
        (["trainer.total_training_steps=-1"], "total_training_steps=-1: a whole number"),
        (["algorithm.rollout_correction.rollout_is=sequence"], "rollout_is=sequence treats all turns"),
        (["algorithm.rollout_correction.rollout_rs=seq_mean_k1"], "rollout_rs=seq_mean_k1 treats all turns"),
        (
            [TURN, "actor_rollout_ref.rollout.n=2", "algorithm.filter_groups={enable: True, metric: reward}"],
            "metric=return",
        ),
        # devices of their own for the servers
        ([SEPARATE], "rollout.nnodes=0, but .*hybrid_engine=False.*Give at least 1"),
        ([SEPARATE, *DEVICES], "backend=naive sends weights within a process.*Use nccl"),
        # the sampler
        (["actor_rollout_ref.rollout.top_k=50"], "rollout.top_k=50 samples from another policy.*silently change"),
        (["actor_rollout_ref.rollout.top_p=0.9"], "rollout.top_p=0.9 samples from another policy"),
        (["actor_rollout_ref.rollout.temperature=0"], "temperature has to be above 0"),
        (["++actor_rollout_ref.rollout.repetition_penalty=1.2"], "repetition_penalty=1.2 samples from another policy"),
        # settings that would be ignored
        (["algorithm.norm_adv_by_std_in_grpo=False"], "has no effect.*adv_estimator=drgrpo"),
        (["algorithm.use_pf_ppo=True"], "no effect on turn-level advantages"),
        (["actor_rollout_ref.rollout.ignore_eos=True"], "a response ends where the model ends its turn"),
        (["reward.custom_reward_function.path=rewards.py"], "environments give the rewards"),
        # the environments
        ([TWO, "data.train_batch_size=1", f"{ACTOR}.ppo_mini_batch_size=1", "critic.ppo_mini_batch_size=1"], "data.tr"),
        ([TWO, "gem.eval_episodes=1"], "gem.eval_episodes=1: 2 environment ids for 1 slots"),
        (["gem.eval_episodes=0"], "gem.eval_episodes=0"),
        (["gem.env=[]"], "no environment id"),
        (["gem.env=visual:Count-v0-easy", GAE], "shows images, and algorithm.adv_estimator=gae needs a critic"),
        (["gem.eval_env=visual:Count-v0-easy", GAE], "visual:Count-v0-easy shows images"),
        (["+data.mm_processor_kwargs.max_pixels=784"], "data.mm_processor_kwargs"),
        ([TWO, "gem.env_weights=[inf,1]"], "above 0"),
        # wrappers and modules
        (["gem.wrappers=[shout]"], "cannot load 'shout': it is not 'package.module:name'"),
        (["gem.wrappers=['no_such_module:Shout']"], "cannot load 'no_such_module:Shout': No module named"),
        (["gem.wrappers=['gem_core.wrappers:Shout']"], "cannot load 'gem_core.wrappers:Shout': .*'Shout'"),
        (["gem.wrappers=['gem_verl._tasks:ENDLESS']"], "not a function or class that takes an Env"),
        (["gem.modules=[no_such_module]"], "gem.modules.*no_such_module"),
    ],
)
def test_refused(checked, flags, says):
    with pytest.raises(SettingsError, match=says):
        checked(*flags)


@pytest.mark.parametrize(
    "flags",
    [
        [],
        [TURN],
        [TURN, "gem.history=1"],
        ["algorithm.adv_estimator=rebn_loo"],
        ["algorithm.adv_estimator=reinforce", "algorithm.gamma=0"],
        ["algorithm.adv_estimator=grpo", "actor_rollout_ref.rollout.n=2"],
        ["algorithm.adv_estimator=gae"],
        ["algorithm.adv_estimator=gae", "critic.enable=True"],
        ["critic.enable=False"],
        [f"{ACTOR}.ppo_mini_batch_size=4", "critic.ppo_mini_batch_size=2"],
        [f"{ACTOR}.loss_agg_mode=token-mean", f"{ACTOR}.loss_scale_factor=null"],
        [f"{ACTOR}.loss_agg_mode=token-sum"],
        [TURN, f"{ACTOR}.policy_loss.loss_mode=gspo"],
        [TURN, "algorithm.rollout_correction.rollout_is=sequence"],
        ["algorithm.rollout_correction.rollout_is=token"],
        ["algorithm.rollout_correction=null"],
        ["algorithm.filter_groups={enable: True, metric: return}", "actor_rollout_ref.rollout.n=2", TURN],
        ["algorithm.filter_groups=null", TURN],
        ["gem.env_timeout=null", "gem.max_env_failure_share=null"],
        ["gem.vector_backend=sync"],
        [TWO, "gem.env_weights=[3,1]", "gem.eval_env=game:Corridor-v0"],
        ["gem.env=game:Corridor-v0", "gem.env_kwargs={max_turns: 3}"],
        ["gem.env=game:Corridor-v0", "gem.env_kwargs.max_turns=3"],
        ["gem.max_response_tokens=256"],
        ["actor_rollout_ref.rollout.temperature=0.7", "actor_rollout_ref.rollout.val_kwargs.top_p=0.7"],
    ],
)
def test_accepted(checked, flags):
    checked(*flags)


@pytest.mark.parametrize(
    ("flags", "error", "says"),
    [
        (["gem.env=game:GuessTheNumber-v0-eazy"], NotFoundError, "Did you mean .*'game:GuessTheNumber-v0-easy'"),
        (["gem.eval_env=game:Coridor-v0"], NotFoundError, "Did you mean .*'game:Corridor-v0'"),
        (["gem.env=game:Corridor-v0", "gem.env_kwargs={max_turn: 2}"], EnvKwargsError, "Did you mean 'max_turns'"),
        (["gem.env=game:Corridor-v0", "gem.env_kwargs={length: 1}"], EnvError, "length >= 2"),
        (["algorithm.adv_estimator=rebm"], NotFoundError, "Did you mean 'rebn'"),
        (["algorithm.adv_estimator=nobody:clipped"], NotFoundError, "nobody:clipped"),
        (["gem.plugins=[nobody]"], PluginError, "no plugin named 'nobody'"),
        (["gem.wrappers=['gem_core.wrappers:TurnLimit']"], EnvError, "wrapping it with .*TurnLimit.*'max_turns'"),
    ],
)
def test_missing_settings(checked, flags, error, says):
    with pytest.raises(error, match=says):
        checked(*flags)


def test_the_trainer_checks_as_well(configure):
    """The trainer can also be started by `python -m verl.trainer.main_ppo`."""
    from gem_verl._trainer import TurnTrainer

    with pytest.raises(SettingsError, match=r"gem\.history=1"):
        TurnTrainer(configure("gem.history=1"))
    config = configure("algorithm.gamma=0.9", "+data.apply_chat_template_kwargs.enable_thinking=False")
    OmegaConf.resolve(config)  # as verl's task runner does before it makes a trainer
    TurnTrainer(config)


def test_without_an_environment_an_example_is_named():
    with pytest.raises(SettingsError, match=r"For example gem.env=game:GuessTheNumber-v0-easy; .*gem-core list"):
        check(gem_verl.compose(["trainer.total_training_steps=1"]))


def test_arguments_of_an_environment_on_the_command_line():
    """As in the docs, with the real parser of the command line; the program ends before it starts Ray."""
    flags = ["gem.env=game:Corridor-v0", "data.train_batch_size=8", "trainer.total_training_steps=1"]
    flags += ["gem.env_kwargs={max_turns:3}", "--cfg", "job", "--package", "gem"]
    done = answer_of("gem_verl", *flags)
    assert done.returncode == 0, done.stderr
    section = yaml.safe_load(done.stdout)
    assert section["env_kwargs"] == {"max_turns": 3}
    assert VerlSettings.of(gem_verl.compose(flags[:4]).gem).env_kwargs == {"max_turns": 3}


def test_the_program_names_an_unknown_setting():
    wrong = answer_of("gem_verl", "gem.env=game:Corridor-v0", "gem.hystory=2")
    assert wrong.returncode != 0
    assert "hystory" in wrong.stderr


def test_unknown_settings_are_refused(configure):
    with pytest.raises(ConfigCompositionException, match="no_such"):
        gem_verl.compose(["gem.no_such=1"])
    with pytest.raises(ConfigCompositionException, match=r"algorithm.gama"):
        configure("algorithm.gama=0.9")
    config = configure()
    from omegaconf import open_dict

    with open_dict(config.gem):
        config.gem.no_such = 1  # as `+gem.no_such=1` does
    with pytest.raises(SettingsError, match=r"there is no setting gem.no_such"):
        check(config)


def test_defaults():
    """The defaults of the paper: one value per turn, a batch as a whole, no normalization by length."""
    config = gem_verl.compose(
        ["gem.env=game:Corridor-v0", "trainer.total_training_steps=1", "data.train_batch_size=256"]
    )
    settings = check(config)
    assert (config.algorithm.adv_estimator, config.algorithm.gamma) == ("rebn", 1.0)
    assert config.actor_rollout_ref.actor.loss_agg_mode == "seq-mean-token-sum-norm"
    assert config.actor_rollout_ref.actor.loss_scale_factor == settings.max_response_tokens == 512
    assert config.actor_rollout_ref.actor.use_dynamic_bsz
    assert (config.data.train_files, config.data.val_files, config.data.shuffle) == ("train", "eval", False)
    assert settings.train_weights == settings.eval_weights == {"game:Corridor-v0": 1}
    assert (settings.row, settings.history, settings.vector_backend) == ("episode", None, "thread")
    assert settings.failures.then is ErrorAction.TRUNCATE
    assert (settings.failures.timeout, settings.failures.retries, settings.failures.max_failure_share) == (
        600.0,
        0,
        0.5,
    )
    # verl's own checks accept it, too.
    from verl.utils.config import validate_config

    validate_config(config, use_reference_policy=False, use_critic=False)


def test_response_limit_of_the_loss_follows_the_setting(configure):
    config = configure("gem.max_response_tokens=16")
    assert config.actor_rollout_ref.actor.loss_scale_factor == 16
    assert config.data.gem.max_response_tokens == 16


def test_context_is_prompt_and_response(configure):
    settings = check(configure("gem.system_prompt=Be brief."))
    rollout = settings.rollout(8, 384)
    assert (rollout.max_response_tokens, rollout.max_context_tokens) == (8, 384)
    assert rollout.system_prompt == "Be brief."
    thinking = check(configure("+data.apply_chat_template_kwargs.enable_thinking=False"))
    assert thinking.rollout(8, 384).template_options == {"enable_thinking": False}


def test_context_is_no_more_than_the_engine_and_the_model_take(configure):
    from gem_verl._runner import _context_limit

    assert _context_limit(configure()) == 128 + 256
    assert _context_limit(configure("actor_rollout_ref.rollout.max_model_len=200")) == 200
    assert _context_limit(configure("data.max_response_length=4096")) == 1024, "the tiny model's positions"


def test_the_trainer_keeps_the_name_of_the_estimator(configure):
    from gem_verl._trainer import TurnTrainer

    for name, critic in (("rebn", False), ("gae", True)):
        config = configure(f"algorithm.adv_estimator={name}")
        made = TurnTrainer(config)
        assert made.use_critic is critic
        assert (config.algorithm.adv_estimator, config.trainer.v1.trainer_mode) == (name, "sync")
        assert made.replay_buffer.poll_interval < 2


@pytest.mark.parametrize("version", ["0.8.9", "0.10.0", "1.0"])
def test_verl_out_of_range(monkeypatch, version):
    real = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version if name == "verl" else real(name))
    with pytest.raises(FrameworkVersionError, match=rf"supports verl>=0.9,<0.10, but {version} is installed.*\[verl\]"):
        _ = gem_verl.train


@pytest.mark.parametrize("version", ["0.9.0", "0.9.1", "0.9.7.dev0"])
def test_verl_in_range(monkeypatch, version):
    real = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version if name == "verl" else real(name))
    assert callable(gem_verl.train)


def test_verl_missing(monkeypatch):
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(FrameworkVersionError, match=rf"not installed. Next: {re.escape(install_line('verl'))}"):
        _ = gem_verl.compose


def test_the_command_reports_it_too(monkeypatch):
    from gem_verl.__main__ import main

    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.8.0")
    with pytest.raises(SystemExit, match=r"^FrameworkVersionError: .*0\.8\.0 is installed"):
        main()


def test_importing_the_adapter_imports_no_framework():
    code = "import sys, gem_verl, gem_verl.plugin; print({'verl', 'torch', 'ray', 'hydra'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=True)
    assert done.stdout.strip() == "set()"


def test_no_other_names():
    with pytest.raises(AttributeError, match="no attribute 'tain'"):
        _ = gem_verl.tain
