from gem_support.core_fixtures import *  # noqa: F403
