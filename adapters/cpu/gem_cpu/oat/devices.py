"""The functions of CUDA that Oat, DeepSpeed and vLLM call, for the CPU."""

from __future__ import annotations

import functools
import os
import types
from pathlib import Path
from typing import Any

from gem_cpu.imports import Change, change_modules
from gem_cpu.processes import ENVIRONMENT, python_path

PATH = Path(__file__).with_name("path")
DEVICES = "GEM_CPU_OAT_DEVICES"


def environment(devices: int = 1) -> dict[str, str]:
    """Environment variables of a process that uses the CPU in place of this many GPUs; child processes inherit them."""
    return {
        **ENVIRONMENT,
        "PYTHONPATH": python_path(PATH),
        DEVICES: str(devices),
        "DS_ACCELERATOR": "cpu",  # DeepSpeed looks for CUDA first
        "USE_TF": "0",  # Launchpad's TensorFlow is incomplete, and transformers would import it
        "VLLM_USE_V1": "0",  # vLLM 0.8.5's newer engine does not support CPUs
        "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
        "VLLM_CPU_OMP_THREADS_BIND": "all",
        "VLLM_NO_USAGE_STATS": "1",
        "TORCH_COMPILE_DISABLE": "1",  # compiling takes longer than these runs
    }


def prepare(devices: int = 1) -> None:
    """Make this process and its children use the CPU in place of this many GPUs. Call before Oat is imported."""
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)  # Oat would count the GPUs in it
    os.environ.update(environment(devices))
    install()


@functools.cache  # called when Python starts, and by programs that prepare themselves
def install() -> None:
    """Change each module of `SWAPS` as soon as this process imports it: torch is slow to import."""
    change_modules(SWAPS)


def _torch(torch: Any) -> None:
    cpu = torch.device("cpu")
    torch.cuda.current_device = lambda: cpu  # Oat moves tensors there
    for name in ("synchronize", "empty_cache", "set_device"):
        setattr(torch.cuda, name, _nothing(name))
    torch.cuda.memory_allocated = lambda *_, **__: 0  # Oat logs it


def _oat_args(args: Any) -> None:
    args.torch = _with_devices()  # the module refuses more devices than exist; vLLM must not see these devices


def _oat_interface(interface: Any) -> None:
    interface.torch = _with_devices()  # the module counts devices


def _oat_deepspeed(deepspeed: Any) -> None:
    # FusedAdam is a CUDA kernel; the CPU version takes minutes to compile.
    deepspeed.DeepspeedStrategy.create_optimizer = _create_optimizer


def _oat_distributed(distributed: Any) -> None:
    distributed.WorkerWrap.update_weight = _update_weight  # Oat's own method receives weights on a GPU


def _deepspeed_comm(comm: Any) -> None:
    comm.build_shm_op = lambda: None  # takes minutes to compile


SWAPS: dict[str, Change] = {
    "torch": _torch,
    "oat.args": _oat_args,
    "oat.interface": _oat_interface,
    "oat.utils.deepspeed": _oat_deepspeed,
    "oat.utils.distributed": _oat_distributed,
    "deepspeed.comm.torch": _deepspeed_comm,
}


def _with_devices() -> Any:
    return types.SimpleNamespace(cuda=types.SimpleNamespace(device_count=lambda: int(os.environ[DEVICES])))


def _create_optimizer(self: Any, model: Any, **options: Any) -> Any:
    import torch
    from oat.utils import deepspeed

    inner = model.model if isinstance(model, deepspeed.LLM) else model
    groups = deepspeed.get_optimizer_grouped_parameters(inner, options["weight_decay"])
    return torch.optim.AdamW(groups, **options)


def _update_weight(
    self: Any, name: str, dtype: str, shape: Any, cuda_ipc_handles: Any = None, empty_cache: bool = False
) -> None:
    import torch
    from oat.utils.distributed import torch_type_codec

    kind: Any = torch_type_codec(dtype)
    weight = torch.empty(shape, dtype=kind)
    torch.distributed.broadcast(weight, 0, group=self._model_update_group)
    self.model_runner.model.load_weights(weights=[(name, weight)])


def _nothing(name: str) -> Any:
    # Separate functions: torch._dynamo refuses the same function twice.
    return types.FunctionType((lambda *_, **__: None).__code__, globals(), name)
