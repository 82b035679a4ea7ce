#!/bin/bash
# Make the homes of tests/moving/homes anew by running the real systems. Needs uv and Python 3.13, and a folder that may
# be written: scripts/homes/make.sh DIR [AGENT_COMPUTER_SOURCE]. The homes are made for a person called ann, in /home/ann.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
into="$here/../../tests/moving/homes"
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
    -o -name skill-creator -o -name job-creator \) -prune -exec rm -rf {} +
  find "$into/$2" -type l -delete
}

"${SYSTEM_PYTHON:-python3}" "$here/model.py" "$port" "$here/script.json" & model=$!
trap 'kill $model' EXIT
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
find "$into" -type f -exec chmod 644 {} + && chmod 755 "$into"/operator-ai-*/jobs/*/scripts/*
sed -i "s|$MODEL_URL|http://localhost:1234/v1|g" "$into"/*/config.json
rm -rf "$HOME/.operator" "$HOME/.operator-use" "$HOME/openagent" "$HOME/agent_computer"
du -sh "$into"/*
