"""Special tokens that a response is read by."""

_THOUGHTS = """
<think> </think> <thinking> </thinking> <thought> </thought> <reasoning> </reasoning> [THINK] [/THINK] <mm:think>
</mm:think> <seed:think> </seed:think> <longcat_think> </longcat_think> ◁think▷ ◁/think▷ <|START_THINKING|>
<|END_THINKING|> <|inner_prefix|> <|inner_suffix|> <|open|> <|close|> <|sep|> <|channel> <channel|> <|start|>
<|channel|> <|constrain|> <|message|>
"""
_CALLS = """
<tool_call> </tool_call> <longcat_tool_call> </longcat_tool_call> <seed:tool_call> </seed:tool_call> <arg_key>
</arg_key> <arg_value> </arg_value> <minimax:tool_call> </minimax:tool_call> <tool_calls> </tool_calls> <|tool_call|>
<|/tool_call|> <|tool_call> <tool_call|> <|"|> <start_function_call> <end_function_call> <escape> <|python_tag|>
[TOOL_CALLS] [CALL_ID] [ARGS] <|START_ACTION|> <|END_ACTION|> <|action_start|> <|plugin|> <|action_end|>
<|tool_call_start|> <|tool_call_end|> <|tool_calls_section_begin|> <|tool_calls_section_end|> <|tool_call_begin|>
<|tool_call_argument_begin|> <｜tool▁calls▁begin｜> <｜tool▁calls▁end｜> <｜tool▁call▁begin｜> <｜tool▁call▁end｜>
<｜tool▁sep｜> ｜DSML｜
"""
MARKS = frozenset(f"{_THOUGHTS}{_CALLS}".split())
"""Marks of thoughts and calls that are special tokens of some family. Decoding keeps those that the tokenizer has, and
leaves out all other special tokens, the ends of turns included."""
