"""Replaces devices, a transport and kernels, but no code that trains, samples or computes advantages."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from gem_cpu.imports import Change, change_modules


@functools.cache  # called when Python starts, and by programs that prepare themselves
def install() -> None:
    """Change each module of `SWAPS` as soon as this process imports it."""
    change_modules(SWAPS)


class _Device(str):
    """The CPU for `.to(device)`; a number in OpenRLHF's `f"cuda:{device}"`, where nothing is sent."""

    def __format__(self, spec: str) -> str:
        return "0"


def _devices(_: ModuleType) -> None:
    """OpenRLHF reads the device from `torch.cuda`, and has "cuda" in its code twice."""
    import torch
    from torch.distributed import device_mesh

    torch.cuda.current_device = lambda: _Device("cpu")
    # Three separate functions: torch._dynamo refuses the same function twice.
    torch.cuda.set_device = lambda *_: None
    torch.cuda.synchronize = lambda *_: None
    torch.cuda.current_stream = lambda *_: None
    mesh, empty = device_mesh.init_device_mesh, torch.empty
    device_mesh.init_device_mesh = lambda device_type, *args, **kwargs: mesh("cpu", *args, **kwargs)

    @functools.wraps(empty)
    def empty_on_cpu(*args: Any, **kwargs: Any) -> torch.Tensor:
        if kwargs.get("device") == "cuda":  # where vLLM receives weights
            kwargs["device"] = "cpu"
        return empty(*args, **kwargs)

    torch.empty = empty_on_cpu


def _transport(module: Any) -> None:
    """OpenRLHF sends weights to vLLM by NCCL, which needs GPUs; here they go through the group's store."""

    class StoreCommunicator:
        def __init__(self, group: Any, device: Any = None, **_: Any) -> None:
            self._group = group

        def broadcast(self, tensor: Any, src: int, stream: Any = None) -> None:
            sent = self._group.broadcast(tensor.detach(), src)
            if self._group.rank != src:
                tensor.copy_(sent)

    module.PyNcclCommunicator = StoreCommunicator


def _linear(module: Any) -> None:
    """vLLM packs the weights of linear layers for the CPU on the first load, so later weights would be lost."""

    def plain(layer: Any, remove_weight: bool) -> None:
        import torch

        layer.cpu_linear = torch.nn.functional.linear

    module.dispatch_cpu_unquantized_gemm = plain


def _no_shared_memory_operator(module: Any) -> None:
    """DeepSpeed would compile the operator for minutes; gloo reduces without it."""
    module.build_shm_op = lambda: None


def _torch_adam(module: Any) -> None:
    """DeepSpeed would compile its own Adam for minutes; torch's needs no compiling."""
    original = module.DeepSpeedEngine.get_optimizer_configuration

    @functools.wraps(original)
    def configuration(self: Any, parameters: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        return original(self, {**parameters, "torch_adam": True}, *args, **kwargs)

    module.DeepSpeedEngine.get_optimizer_configuration = configuration


def _float32(module: Any) -> None:
    """bfloat16 is slow on a CPU, and coarse for a model of 64 dimensions."""
    import torch

    module.convert_to_torch_dtype = lambda param_dtype: torch.float32


def _float32_in_deepspeed(module: Any) -> None:
    """As `_float32`."""
    for name in ("get_train_ds_config", "get_eval_ds_config"):
        original = getattr(module, name)

        def configuration(*args: Any, original: Any = original, **kwargs: Any) -> dict[str, Any]:
            return {**original(*args, **kwargs), "bf16": {"enabled": False}}

        setattr(module, name, configuration)


def _float32_in_vllm(module: Any) -> None:
    """As `_float32`."""
    original = module.EngineArgs.create_engine_config

    @functools.wraps(original)
    def configuration(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.dtype = "float32"
        return original(self, *args, **kwargs)

    module.EngineArgs.create_engine_config = configuration


def _no_videos(module: Any) -> None:
    """The processor's part for videos needs torchvision."""
    from gem_cpu.images import leave_out_videos

    leave_out_videos(module)


SWAPS: dict[str, Change] = {
    "openrlhf": _devices,
    "vllm.distributed.device_communicators.pynccl": _transport,
    "vllm.model_executor.layers.utils": _linear,
    "openrlhf.utils.utils": _float32,
    "openrlhf.utils.deepspeed.deepspeed_utils": _float32_in_deepspeed,
    "vllm.engine.arg_utils": _float32_in_vllm,
    "transformers.models.qwen2_vl.processing_qwen2_vl": _no_videos,
    "deepspeed.comm.torch": _no_shared_memory_operator,
    "deepspeed.runtime.engine": _torch_adam,
}
