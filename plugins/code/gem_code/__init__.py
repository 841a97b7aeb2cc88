"""Programming problems whose answer is a program, graded by tests."""
