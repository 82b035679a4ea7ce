"""Where everything of one Deskhand lies."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ..types.folders import make_private_folder

FILE_NAME = "deskhand.yaml"
SHARED = "shared"
"""The folder that all agents share, and the link to it in each workspace."""


class Home(msgspec.Struct, frozen=True):
    """Where everything of one Deskhand lies. A `worker` that helps the server has a folder of its
    own for what belongs to one process: its locks, its log, its health."""

    root: Path
    worker: str = ""

    @property
    def config(self) -> Path:
        return self.root / FILE_NAME

    @property
    def env(self) -> Path:
        return self.root / ".env"

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def process(self) -> Path:
        """The files of the process that serves, or of this worker."""
        return self.state / "workers" / self.worker if self.worker else self.state

    @property
    def database(self) -> Path:
        return self.state / "deskhand.db"

    @property
    def secrets(self) -> Path:
        return self.state / "secrets.json"

    @property
    def sign_ins(self) -> Path:
        """The sign-ins that agents may use in their browsers."""
        return self.state / "sign_ins"

    @property
    def blobs(self) -> Path:
        return self.state / "blobs"

    @property
    def processes(self) -> Path:
        return self.process / "processes"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def lock(self) -> Path:
        return self.process / "driver.lock"

    @property
    def serve_lock(self) -> Path:
        return self.process / "serve.lock"

    def all_locks(self) -> list[Path]:
        """The locks of all processes that use this home: who holds them all is alone."""
        workers = sorted(self.state.glob("workers/*/serve.lock"))
        return [self.serve_lock, self.lock, *workers]

    @property
    def socket(self) -> Path:
        return self.process / "deskhand.sock"

    @property
    def editors(self) -> Path:
        """The sockets of the editors that have conversations open, for all processes."""
        return self.state / "editors"

    @property
    def anchors(self) -> Path:
        return self.state / "anchor.jsonl"

    @property
    def sent_traces(self) -> Path:
        return self.state / "sent_traces"

    @property
    def cases(self) -> Path:
        return self.root / "cases"

    @property
    def log(self) -> Path:
        return self.logs / (f"worker-{self.worker}.log" if self.worker else "deskhand.log")

    @property
    def last_start(self) -> Path:
        return self.process / "last_start"

    @property
    def health(self) -> Path:
        return self.process / "health.json"

    @property
    def startup_error(self) -> Path:
        return self.process / "startup_error.json"

    @property
    def address(self) -> Path:
        return self.process / "web.json"

    @property
    def history(self) -> Path:
        return self.state / "history"

    @property
    def skills(self) -> Path:
        return self.root / "skills"

    @property
    def plugins(self) -> Path:
        return self.root / "plugins"

    def make_folder(self, folder: Path) -> None:
        """Make a folder of this home, and the home itself, for its owner alone. Raises OSError."""
        make_private_folder(self.root)
        make_private_folder(folder)

    def is_protected(self, folder: Path, write: bool) -> bool:
        """Whether no tool may have this folder: it holds this home or our state, or, to `write`,
        what tells agents how to behave. `folder` has no links in it."""
        root = self.root.resolve()
        if root.is_relative_to(folder) or not folder.is_relative_to(root):
            return root.is_relative_to(folder)
        inside = folder.relative_to(root).parts
        steering = inside[0] in ("jobs", "prompts") or (inside[0] == "agents" and len(inside) < 3)
        return inside[0] == self.state.name or (write and steering)

    def agent(self, name: str) -> Path:
        return self.root / "agents" / name

    def mcp_server(self, name: str) -> Path:
        """The folder of an MCP server that runs here: the one place where it may write."""
        return self.root / "mcp" / name

    def workspace(self, agent: str) -> Path:
        return self.agent(agent) / "workspace"
