# Everything starts here, on a bare machine too: Debian 12, Python 3.11 and pip are enough.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help run test test-all test-model everyday check conformance bench agentdojo torture torture-servers torture-jobs torture-clock torture-workers torture-channels torture-deep soak linear references screenshots deps lock release clean

VENV := .venv
DOJO := .venv-agentdojo
CLIENTS := .venv-clients
BIOME := requirements/biome/node_modules/.bin/biome
BIN := $(VENV)/bin
SYSTEM_PACKAGES := bubblewrap
TEST_PACKAGES := $(SYSTEM_PACKAGES) chromium dovecot-imapd mosquitto openssl postgresql xvfb dbus at-spi2-core libatk-adaptor openbox zenity
# Programs of several toolkits, whose windows are used.
DESKTOP_PACKAGES := tesseract-ocr xclip xterm sway wl-clipboard galculator gnome-calculator kcalc mousepad gedit featherpad fonts-dejavu-core adwaita-icon-theme
# What opens the documents that skills write.
OFFICE_PACKAGES := libreoffice-writer-nogui libreoffice-calc-nogui libreoffice-impress-nogui
# Another browser in which the page is used.
BROWSER_PACKAGES := firefox-esr
export UV_SYSTEM_CERTS ?= 1
# The tests start hundreds of processes: where no bytecode may be kept, each of them would first compile all of us.
unexport PYTHONDONTWRITEBYTECODE
# uv where it is installed, else our own copy: a minimal Debian has no python3-venv, and its pip may not install.
UV := $(shell command -v uv 2>/dev/null || echo .boot/bin/uv)

help: ## This list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.boot/bin/uv:
	@python3 -m pip --version >/dev/null 2>&1 || { echo 'pip is missing: apt-get install python3-pip' >&2; exit 2; }
	python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target .boot uv

$(BIN)/python: | $(UV)
	$(UV) venv --quiet --allow-existing $(VENV)

# What people run: the core, the engine for the embedded model, and what makes pictures smaller.
$(VENV)/.run: requirements/run.txt pyproject.toml | $(BIN)/python
	@echo 'Setting up …'
	@$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements/run.txt
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps -e .
	@touch $@

$(VENV)/.dev: requirements/dev.txt pyproject.toml | $(BIN)/python
	$(UV) pip sync --quiet --python $(BIN)/python --require-hashes requirements/dev.txt
	$(UV) pip install --quiet --python $(BIN)/python --no-deps -e .
	@touch $@ $(VENV)/.run

deps: ## Install the system packages that the sandbox needs
	@bash scripts/deps.sh $(SYSTEM_PACKAGES)

run: $(VENV)/.run ## Start it, and open its page
	@bash scripts/deps.sh $(SYSTEM_PACKAGES) || echo 'going on without: commands then run in the weaker sandbox, or not at all' >&2
	@$(BIN)/deskhand open

# An environment of its own: OpenAI's client and what is built on it bring dozens of packages that nothing of ours needs.
$(CLIENTS)/.ready: requirements/clients.txt | $(UV)
	$(UV) venv --quiet --allow-existing $(CLIENTS)
	$(UV) pip sync --quiet --python $(CLIENTS)/bin/python --require-hashes requirements/clients.txt
	@touch $@

# MCP servers of others, from PyPI and from npm.
SERVERS := requirements/mcp_servers
.venv-mcp/.ready: requirements/mcp_servers.txt | $(UV)
	$(UV) venv --quiet --allow-existing .venv-mcp
	$(UV) pip sync --quiet --python .venv-mcp/bin/python --require-hashes requirements/mcp_servers.txt
	@touch $@

# A homeserver, for the tests of the channel.
.venv-matrix/.ready: requirements/matrix.txt | $(UV)
	$(UV) venv --quiet --allow-existing .venv-matrix
	$(UV) pip sync --quiet --python .venv-matrix/bin/python --require-hashes requirements/matrix.txt
	@touch $@

$(SERVERS)/node_modules/.ready: $(SERVERS)/package-lock.json
	@command -v npm >/dev/null || bash scripts/deps.sh npm
	@npm ci --prefix $(SERVERS) --ignore-scripts --no-audit --no-fund --silent
	@touch $@

# An emulator of Slack's Web API that others have written, with a Node that is new enough for it.
EMULATOR := requirements/slack_emulator
.venv-node/.ready: requirements/node.txt | $(UV)
	$(UV) venv --quiet --allow-existing .venv-node
	$(UV) pip sync --quiet --python .venv-node/bin/python --require-hashes requirements/node.txt
	@touch $@

$(EMULATOR)/node_modules/.ready: $(EMULATOR)/package-lock.json
	@command -v npm >/dev/null || bash scripts/deps.sh npm
	@npm ci --prefix $(EMULATOR) --ignore-scripts --no-audit --no-fund --silent
	@touch $@

test: check $(VENV)/.tests ## Set up, check, and run the tests that take minutes
	@$(BIN)/python -m pytest

test-all: check $(VENV)/.tests .venv-mcp/.ready $(SERVERS)/node_modules/.ready .venv-node/.ready $(EMULATOR)/node_modules/.ready ## The same with the slow tests and all examples of properties; takes half an hour
	@bash scripts/deps.sh $(OFFICE_PACKAGES) $(DESKTOP_PACKAGES) $(BROWSER_PACKAGES)
	@TESTS=all $(BIN)/python -m pytest --durations=25

$(VENV)/.tests: $(VENV)/.dev $(CLIENTS)/.ready .venv-matrix/.ready
	@bash scripts/deps.sh $(TEST_PACKAGES)
	@touch $@

# The formatter and linter of the page: one program, from npm.
$(BIOME): requirements/biome/package-lock.json
	@command -v npm >/dev/null || bash scripts/deps.sh npm
	@npm ci --prefix requirements/biome --ignore-scripts --no-audit --no-fund --silent
	@touch $@

check: $(VENV)/.dev $(BIOME) ## Format, lint, types, import order; of the page, too
	@$(BIN)/ruff format --check --quiet . || { echo 'run: $(BIN)/ruff format .' >&2; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIOME) check --error-on-warnings src/deskhand/web/static || { echo 'run: $(BIOME) check --write src/deskhand/web/static' >&2; exit 1; }

test-model: $(VENV)/.dev ## Put the unseen everyday tasks and one long work to the real embedded model; takes half an hour
	@$(MAKE) --no-print-directory everyday SET=fresh
	@nice -n 5 $(BIN)/python -m deskhand.testing.model_long --model embedded/$(or $(MODEL),qwen2.5-coder-1.5b)

everyday: $(VENV)/.dev ## Put fifty everyday tasks to the real embedded model through `deskhand serve`; SET=unseen or fresh: fifty others
	@$(BIN)/deskhand model pull $(or $(MODEL),qwen2.5-coder-1.5b)
	@nice -n 5 $(BIN)/python -m deskhand.testing.everyday.run --set $(or $(SET),tuned) --model embedded/$(or $(MODEL),qwen2.5-coder-1.5b)

CONFORMANCE := requirements/conformance
$(CONFORMANCE)/node_modules/.ready: $(CONFORMANCE)/package-lock.json
	@npm ci --silent --prefix $(CONFORMANCE)
	@touch $@

conformance: $(VENV)/.dev $(CONFORMANCE)/node_modules/.ready ## Run the public conformance suite of MCP against our client and our server
	@$(BIN)/python scripts/conformance.py $(CONFORMANCE)/node_modules/.bin/node $(CONFORMANCE)/node_modules/@modelcontextprotocol/conformance/dist/index.js

torture: $(VENV)/.dev ## Kill the real process 200 times, and compare with the truth; STORE=postgres: the database server, too; HELPERS=1: with sub-agents, teammates and scripts
	@$(BIN)/python -m deskhand.testing.torture --kills $(or $(KILLS),200) --store $(or $(STORE),sqlite) $(if $(HELPERS),--helpers)

torture-servers: $(VENV)/.dev ## Kill it 40 times while an MCP server dies, hangs and floods, and compare with the truth
	@$(BIN)/python -m deskhand.testing.torture_servers --kills $(or $(KILLS),40)

torture-jobs: $(VENV)/.dev ## Kill it 100 times while jobs fire, and count what became of each time
	@$(BIN)/python -m deskhand.testing.torture_jobs --kills $(or $(KILLS),100)

torture-clock: $(VENV)/.dev ## Kill it 100 times while its clock is set by up to two days, and compare with the truth
	@$(BIN)/python -m deskhand.testing.torture_clock --kills $(or $(KILLS),100)

torture-workers: $(VENV)/.dev ## Kill and stop five workers on one PostgreSQL database 40 times, and compare with the truth
	@$(BIN)/python -m deskhand.testing.torture_workers --kills $(or $(KILLS),40) --jobs 100

torture-channels: $(VENV)/.dev ## Kill it 40 times under Telegram, Slack and Discord at once, and compare with the truth
	@$(BIN)/python -m deskhand.testing.torture_channels --kills $(or $(KILLS),40) --seed $(or $(SEED),1)

torture-deep: $(VENV)/.dev ## Kill a deep work of 60 steps 20 times, and see that each was done once
	@$(BIN)/python -m deskhand.testing.deep_torture --steps $(or $(STEPS),60) --kills $(or $(KILLS),20)

linear: $(VENV)/.dev ## Feed whatever sees text from outside with up to 1 MB, and see that its time grows with the length; takes a quarter of an hour
	@DESKHAND_LINEAR=1 nice -n 5 $(BIN)/python -m pytest -n 0 tests/linear

soak: $(VENV)/.dev ## Let it work for two hours among faults, and see that nothing grows; MINUTES=20: shorter
	@$(BIN)/python -m deskhand.testing.soak --minutes $(or $(MINUTES),120) --csv soak.csv

bench: $(VENV)/.dev ## What a turn costs, beside bare calls; PEERS_BENCH=DIR also runs the harness for other systems
	@$(BIN)/python bench/bench.py
	@if command -v chromium >/dev/null; then $(BIN)/python bench/page.py; fi
	@if [ -n "$${PEERS_BENCH:-}" ]; then cp bench/peers_driver.py "$$PEERS_BENCH/drivers/deskhand.py"; \
	  (cd "$$PEERS_BENCH" && "$(CURDIR)/$(BIN)/python" harness.py deskhand over,stream,conc,persist); fi

# An environment of its own: AgentDojo brings dozens of packages that nothing of ours needs.
$(DOJO)/.ready: requirements/agentdojo.txt pyproject.toml | $(UV)
	$(UV) venv --quiet --allow-existing $(DOJO)
	$(UV) pip sync --quiet --python $(DOJO)/bin/python --require-hashes requirements/agentdojo.txt
	$(UV) pip install --quiet --python $(DOJO)/bin/python --no-deps -e .
	@touch $@

agentdojo: $(DOJO)/.ready ## Let a model that obeys every injection loose, and write what came of it; takes half an hour
	@nice -n 5 $(DOJO)/bin/python bench/agentdojo/run.py --write docs/safety-figures.md $(DOJO_ARGS)

references: $(VENV)/.dev ## Write the pages about commands and settings anew, from the code
	@$(BIN)/python scripts/make_references.py
	@$(BIN)/python scripts/settings_keys.py
	@$(BIN)/python scripts/make_quality_table.py

screenshots: $(VENV)/.dev ## Take the pictures of the page, and the recording of a terminal, anew
	@bash scripts/deps.sh $(TEST_PACKAGES)
	@$(BIN)/python scripts/screenshots.py
	@$(BIN)/python scripts/expectations.py
	@$(BIN)/python scripts/record_terminal.py

lock: | $(UV) ## Resolve the versions anew
	$(UV) pip compile --quiet --universal --generate-hashes --no-header --no-annotate pyproject.toml -o requirements/core.txt
	$(UV) pip compile --quiet --universal --generate-hashes --no-header --no-annotate pyproject.toml --extra local --extra images --extra mcp --extra telegram --extra secrets --extra web --extra memory --extra schema --extra backup --extra postgres --extra metrics --extra sign-in --extra push --extra office --extra tools --extra acp --extra desktop -o requirements/run.txt
	$(UV) pip compile --quiet --universal --generate-hashes --no-header --no-annotate pyproject.toml --all-extras --group dev -o requirements/dev.txt
	$(UV) pip compile --quiet --universal --generate-hashes --no-header --no-annotate pyproject.toml bench/agentdojo/agentdojo.in -o requirements/agentdojo.txt
	$(UV) pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.11 tests/web/clients/clients.in -o requirements/clients.txt
	$(UV) pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.11 $(SERVERS)/mcp_servers.in -o requirements/mcp_servers.txt
	$(UV) pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.11 requirements/matrix/matrix.in -o requirements/matrix.txt
	$(UV) pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.11 $(EMULATOR)/node.in -o requirements/node.txt

release: | $(UV) ## Build the wheel and the source archive into dist/, try them, and list what is installed with which licence
	@UV=$(UV) python3 scripts/release.py dist

clean: ## Remove what the above made
	rm -f soak.csv
	rm -rf .boot requirements/*/node_modules $(VENV) $(DOJO) $(CLIENTS) .venv-mcp .venv-matrix .venv-node .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
