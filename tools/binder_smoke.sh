#!/usr/bin/env bash
# Check that binder/ builds a working image: runs its builder's commands, without Docker.
# Prints the times of an image's build and of a visitor's first cell: the server's start, then the
# kernel and the first code cell of notebook 1.
# Usage: tools/binder_smoke.sh    (PYTHON chooses an interpreter; the image has 3.11)
set -euo pipefail
unset PYTHONPATH VIRTUAL_ENV MPLBACKEND
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
scratch=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$scratch"' EXIT
now() { date +%s.%N; }
since() { awk -v start="$1" -v end="$(now)" 'BEGIN { printf "%.1f", end - start }'; }

# Binder clones the repository, so copy only the files that git tracks or would add.
mkdir "$scratch/clone" "$scratch/home"
cd "$root"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$scratch/clone"
cd "$scratch/clone"

grep -qx 'python-3\.11' binder/runtime.txt
start=$(now)
"${PYTHON:-python3.11}" -m venv "$scratch/env"
export HOME="$scratch/home" PATH="$scratch/env/bin:$PATH"
pip install --quiet --disable-pip-version-check -r binder/requirements.txt
installed=$(since "$start") start=$(now)
binder/postBuild
prepared=$(since "$start")

start=$(now)
jupyter lab --no-browser --allow-root --ip 127.0.0.1 --port 0 --log-level ERROR &
server=$!
until jupyter server list --json 2>/dev/null | grep -q '"port"'; do kill -0 "$server"; sleep 0.1; done
served=$(since "$start") start=$(now)
python - notebooks/01_*.ipynb <<'EOF'
import sys

import nbclient
import nbformat

notebook = nbformat.read(sys.argv[1], as_version=4)
cells = enumerate(notebook.cells)
client = nbclient.NotebookClient(notebook)
with client.setup_kernel():
    client.execute_cell(*next((cell, n) for n, cell in cells if cell.cell_type == "code"))
EOF
first_cell=$(since "$start")
kill "$server"; server=

for notebook in notebooks/*.ipynb; do
  echo "running $notebook"
  jupyter nbconvert --to notebook --execute --ExecutePreprocessor.timeout=120 \
    --ExecutePreprocessor.skip_cells_with_tag=live --log-level WARN --stdout "$notebook" >"$scratch/executed.ipynb"
done
jupyter lab --version
echo "image: installed in $installed s, postBuild in $prepared s"
echo "visitor: server in $served s, first cell of notebook 1 after another $first_cell s"
echo "binder: ok"
