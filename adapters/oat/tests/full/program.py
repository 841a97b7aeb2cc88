"""Run by the tests in this folder: `gem_oat.run` with the command line, as in a user's program."""

from oat.args import get_default_args

from gem_oat import GemOatArgs, run

if __name__ == "__main__":
    run(get_default_args(GemOatArgs))
