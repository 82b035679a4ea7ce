"""Takes out of OpenClaw's sessions.json what is only a copy of the prompt and names folders of this
machine: small_sessions.py FILE."""

import json
import sys
from pathlib import Path

file = Path(sys.argv[1])
sessions = json.loads(file.read_text())
for entry in sessions.values():
    entry.pop("skillsSnapshot", None)
    entry.pop("systemPromptReport", None)
file.write_text(json.dumps(sessions, indent=2))
