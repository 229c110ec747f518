#!/bin/bash
# Trains the cost models that come with Tilewright, with the measurements of data/training, and judges them.
# usage: train_models.sh [TILEWRIGHT]
#
# The measurements were made by these commands, on two cores of a Xeon with AVX-512 and on an H200:
#   tilewright train collect --time 17m --data data/training/avx512.gz
#   tilewright train collect --vectors avx2 --seed 1001 --time 9m --data data/training/avx2.gz
#   tilewright train collect --target cuda --schedules 24 --time 203s --data data/training/sm_90.gz
#   scripts/collect_pipelines.sh tilewright cpu data/training/avx512_pipelines.gz 330 --schedules 16
#   scripts/collect_pipelines.sh tilewright cpu data/training/avx2_pipelines.gz 200 --vectors avx2 --schedules 12
#   scripts/collect_pipelines.sh tilewright cuda data/training/sm_90_pipelines.gz 87 --schedules 16
set -eu
tilewright=${1:-tilewright}
cd "$(dirname "$0")/.."
for family in avx512 avx2 sm_90; do
    files=(--data "data/training/$family.gz" --data "data/training/${family}_pipelines.gz")
    "$tilewright" train judge "${files[@]}"
    "$tilewright" train fit --model ensemble "${files[@]}" --weights "crates/search/weights/$family.json"
done
