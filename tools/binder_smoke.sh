#!/usr/bin/env bash
# Check that binder/ builds a working image: runs its builder's commands, without Docker.
# Usage: tools/binder_smoke.sh    (PYTHON chooses an interpreter; the image has 3.11)
set -euo pipefail
unset PYTHONPATH VIRTUAL_ENV MPLBACKEND
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Binder clones the repository, so copy only the files that git tracks or would add.
mkdir "$scratch/clone" "$scratch/home"
cd "$root"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$scratch/clone"
cd "$scratch/clone"

grep -qx 'python-3\.11' binder/runtime.txt
"${PYTHON:-python3.11}" -m venv "$scratch/env"
export HOME="$scratch/home" PATH="$scratch/env/bin:$PATH"
pip install --quiet --disable-pip-version-check -r binder/requirements.txt
binder/postBuild
for notebook in notebooks/*.ipynb; do
  echo "running $notebook"
  jupyter nbconvert --to notebook --execute --ExecutePreprocessor.timeout=120 \
    --ExecutePreprocessor.skip_cells_with_tag=live --log-level WARN --stdout "$notebook" >"$scratch/executed.ipynb"
done
jupyter lab --version
echo "binder: ok"
