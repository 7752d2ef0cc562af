#!/bin/bash
# Reward 1 if the archive is right and undo.sh restores the inbox, else 0.
export LC_ALL=C
mkdir -p /logs/verifier
reward=1
wrong() { echo "wrong: $*"; reward=0; }
holds() { [ "$(cat "$1" 2>&1)" = "$2" ] || wrong "$1: $(cat "$1" 2>&1)"; }
tree() { find archive inbox -type f 2> /dev/null | sort; }

holds "archive/2022/2022-12-31_01.jpg" "photo c"
holds "archive/2023/2023-07-04_01.jpg" "photo b"
holds "archive/2023/2023-07-04_02.jpg" "photo a"
holds "archive/2023/2023-07-04_03.png" "photo d"
holds "archive/undated/IMG_0099.jpg" "photo without a date"
[ "$(tree | wc -l)" -eq 6 ] || wrong "files: $(tree)"
holds inbox/notes.txt "Not a photograph."

before=$(tree)
echo other > "inbox/IMG 0013.jpeg"
bash undo.sh > /dev/null 2>&1
[ $? -eq 1 ] || wrong "undo.sh must refuse if an old name is taken"
rm -f "inbox/IMG 0013.jpeg"
[ "$(tree)" = "$before" ] || wrong "undo.sh moved files although it refused: $(tree)"

bash undo.sh > /dev/null || wrong "undo.sh: exit code $?"
[ ! -e archive ] || wrong "archive/ is still there"
[ "$(tree)" = "inbox/IMG 0013.jpeg
inbox/IMG_0012.JPG
inbox/IMG_0013.jpg
inbox/IMG_0099.jpg
inbox/notes.txt
inbox/scan.png" ] || wrong "after undo.sh: $(tree)"
holds "inbox/IMG 0013.jpeg" "photo b"
holds inbox/IMG_0012.JPG "photo a"
[ -s plan.tsv ] || wrong "plan.tsv is gone"
echo $reward > /logs/verifier/reward.txt
