"""Names that gem-llm has and gem-core has under another name, for the errors about names that do not exist.

`gem_compat` has all of them; plugins/compat/README.md has the whole table.
"""

from __future__ import annotations

NAMES = {
    "gem_compat": {"multiagent": "Use gem_core.Match, whose agents each have an episode of their own"},
    "gem_core": {
        "print_envs": "Use `gem-core list`, or gem_compat.print_envs()",
        "core": "Use gem_core.Env, and gem_core.Wrapper for EnvWrapper",
        "envs": "Use gem_core.make(id), gem_core.register and gem_core.spec",
        "multiagent": "Use gem_core.Match, whose agents each have an episode of their own",
        "utils": "Use gem_compat.utils",
    },
    "gem_core.wrappers": {
        "wrapper_factory": "Use ToolEnv, ObservationHistory and EpisodeStatistics with functools.partial, or "
        "get_wrapper_fns of gem_compat.wrappers.wrapper_factory",
        "ObservationWrapper": "Use ObservationHistory(env, mode, last=..., tokenizer=...)",
        "EpisodeTrackingWrapper": "Use EpisodeStatistics(env)",
    },
    "gem_core.tools": {
        "ToolEnvWrapper": "Use ToolEnv(env, tools)",
        "tool_env_wrapper": "Use gem_core.tools.ToolEnv(env, tools)",
        "base_tool": "Use gem_core.tools.Tool, or gem_core.tools.FunctionTool for a function of yours",
        "python_code_tool": "Use gem_core.make_tool('python:Interpreter')",
        "search_tool": "Use gem_core.make_tool('search:Passages')",
        "mcp_tool": "Use gem_core.make_tool('mcp:Servers', servers=...)",
    },
    "gem_core.vector": {
        "AutoresetMode": "Use Autoreset",
        "AsyncVectorEnv": "Use make_vec(..., backend='thread')",
        "async_vector_env": "Use gem_core.make_vec(..., backend='thread')",
        "sync_vector_env": "Use gem_core.make_vec(...)",
        "vector_env": "Use gem_core.vector.VectorEnv and gem_core.vector.Autoreset",
    },
}
