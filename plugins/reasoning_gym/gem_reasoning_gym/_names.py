"""Names of reasoning-gym's data sets, without importing it, which takes seconds."""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path

_REGISTERS = re.compile(r"^register_dataset\(\s*(?:DATASET_NAME|[\"'](\w+)[\"'])", re.MULTILINE)
_NAMED = re.compile(r"^DATASET_NAME\s*=\s*[\"'](\w+)[\"']", re.MULTILINE)
_LEFT_OUT = "composite"
"""A mixture of others that cannot be built without saying of which; `gem_core.make_vec` mixes environments."""

_OF_0_1_25 = {
    "algebra": (
        "complex_arithmetic intermediate_integration polynomial_equations polynomial_multiplication "
        "simple_equations simple_integration"
    ),
    "algorithmic": (
        "ab base_conversion binary_alternation binary_matrix caesar_cipher count_primes cryptarithm game_of_life "
        "game_of_life_halting graph_color group_anagrams isomorphic_strings jugs letter_counting letter_jumble "
        "manipulate_matrix number_filtering number_sorting palindrome_generation palindrome_partitioning "
        "pool_matrix ransom_note rotate_matrix rotten_oranges sentence_reordering spell_backward spiral_matrix "
        "string_insertion string_manipulation string_splitting string_synthesis word_ladder "
        "word_sequence_reversal word_sorting"
    ),
    "arc": "arc_1d arc_agi rearc",
    "arithmetic": (
        "basic_arithmetic bitwise_arithmetic calendar_arithmetic chain_sum count_bits decimal_arithmetic "
        "decimal_chain_sum dice fraction_simplification gcd gsm_symbolic lcm leg_counting number_format "
        "power_function prime_factorization products time_intervals"
    ),
    "code": "bf codeio",
    "cognition": (
        "color_cube_rotation figlet_font modulo_grid needle_haystack number_sequence rectangle_count rubiks_cube"
    ),
    "games": (
        "boxnet countdown emoji_mystery futoshiki kakurasu knight_swap mahjong_puzzle maze mini_sudoku n_queens "
        "puzzle24 rush_hour sokoban sudoku survo tower_of_hanoi tsumego"
    ),
    "geometry": "advanced_geometry simple_geometry",
    "graphs": "course_schedule family_relationships largest_island path_star quantum_lock shortest_path",
    "induction": "acre list_functions",
    "logic": "aiw circuit_logic knights_knaves propositional_logic self_reference syllogism zebra_puzzles",
    "probability": "coin_flip",
}

_SCORED = (
    "advanced_geometry arc_agi basic_arithmetic calendar_arithmetic coin_flip complex_arithmetic countdown "
    "emoji_mystery figlet_font fraction_simplification futoshiki game_of_life gsm_symbolic kakurasu knight_swap "
    "knights_knaves letter_jumble mahjong_puzzle mini_sudoku number_sorting polynomial_equations pool_matrix "
    "prime_factorization propositional_logic puzzle24 quantum_lock rearc rectangle_count sentence_reordering "
    "sokoban spell_backward sudoku survo syllogism time_intervals tsumego word_ladder word_sorting"
)
SCORED_ANEW = frozenset(_SCORED.split())
"""Data sets with scores of our own. The scores of all others differ from their `-v0` by white space only."""


@functools.cache
def names() -> Mapping[str, str]:
    """The category of each data set, by name; those of reasoning-gym 0.1.25 where none is installed."""
    spec = importlib.util.find_spec("reasoning_gym")
    if spec is None or spec.origin is None:
        return {name: category for category, listed in _OF_0_1_25.items() for name in listed.split()}
    return registered(Path(spec.origin).parent)


def registered(folder: Path) -> Mapping[str, str]:
    """The category of each data set that the sources in a folder register, by name."""
    found: dict[str, str] = {}
    for file in sorted(folder.rglob("*.py")):
        source = file.read_text(encoding="utf-8")
        if "register_dataset(" not in source:
            continue
        constant = _NAMED.search(source)
        for match in _REGISTERS.finditer(source):
            name = match[1] or (constant[1] if constant else _LEFT_OUT)
            if name != _LEFT_OUT:
                found[name] = file.relative_to(folder).parts[0]
    return found
