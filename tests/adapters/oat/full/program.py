"""Run by the tests beside it: `gem_oat.run` with the command line, as a user's program would have it."""

from oat.args import get_default_args

from gem_oat import GemOatArgs, run

if __name__ == "__main__":
    run(get_default_args(GemOatArgs))
