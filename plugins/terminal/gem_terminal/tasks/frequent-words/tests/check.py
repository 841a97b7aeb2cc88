import re
from collections import Counter
from pathlib import Path

STORY = 'The ferry left the harbour at nine. Nobody on the ferry saw the island, for the fog was thick.\n"Where is the island?" asked Tove. The captain of the ferry pointed at the fog, and the fog said nothing.\nAt ten the fog was gone. The island was there, green and quiet, and the Ferry slowed down.\nTove counted: one lighthouse, two goats, three houses. The goats looked at the ferry; the ferry looked at the goats.\n'
counts = Counter(re.findall("[a-z]+", STORY.lower()))
wanted = sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:5]
assert Path("/app/story.txt").read_text() == STORY
found = [tuple(line.split()) for line in Path("/app/words.txt").read_text().splitlines()]
assert found == [(word, str(number)) for word, number in wanted]
