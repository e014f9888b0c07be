#!/bin/sh
# install.sh FOLDER: puts the test and, from npm, the packages it needs into FOLDER.
# Does not ask npm again when what is there was installed from the same lock file.
set -eu
here="$(dirname "$0")"
folder="$1"
mkdir -p "$folder"
cp "$here/amqplib.test.js" "$here/package.json" "$folder/"
if cmp -s "$here/package-lock.json" "$folder/installed-from.json"; then
  exit 0
fi
cp "$here/package-lock.json" "$folder/"
npm ci --prefix "$folder" --no-audit --no-fund --ignore-scripts
cp "$here/package-lock.json" "$folder/installed-from.json"
