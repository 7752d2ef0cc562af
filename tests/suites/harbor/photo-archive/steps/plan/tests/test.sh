#!/bin/bash
# Reward 1 if plan.tsv is right and the inbox is as it was, else 0.
mkdir -p /logs/verifier
reward=1
want="IMG_0013.jpg	2022/2022-12-31_01.jpg
IMG 0013.jpeg	2023/2023-07-04_01.jpg
IMG_0012.JPG	2023/2023-07-04_02.jpg
scan.png	2023/2023-07-04_03.png
IMG_0099.jpg	undated/IMG_0099.jpg"
if [ "$(cat plan.tsv 2>&1)" != "$want" ]; then
  printf '%s\n' "$want" | diff - plan.tsv
  reward=0
fi
if [ "$(ls inbox | wc -l)" -ne 6 ] || [ -e archive ]; then
  echo "files have been moved already"
  reward=0
fi
echo $reward > /logs/verifier/reward.txt
