"""Records of a run: what was played, what was trained on, and reading both again.

`RunRecorder` writes compact files while a training runs. `open_records` and `read_episodes` read them, and the JSON
lines of `gem_train.rollout.Recorder` and of evaluations. `docs/records.md` has the format.
"""

from gem_core.errors import RecordsError
from gem_core.update import Update
from gem_train.records._content import RecordedEpisode, RecordedSummary, Trained
from gem_train.records._reader import Records, open_records, read_episodes
from gem_train.records._recorder import Detail, RunRecorder
from gem_train.records._token_texts import TokenText, token_pieces

__all__ = [
    "Detail",
    "RecordedEpisode",
    "RecordedSummary",
    "Records",
    "RecordsError",
    "RunRecorder",
    "TokenText",
    "Trained",
    "Update",
    "open_records",
    "read_episodes",
    "token_pieces",
]
