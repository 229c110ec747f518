#!/bin/bash
# Measures random schedules of the pipelines of examples/pipelines, for judging cost models. No model is trained with
# the resulting file.
# usage: collect_pipelines.sh TILEWRIGHT TARGET FILE SECONDS [OPTION…]
set -eu
tilewright=$1 target=$2 file=$3 seconds=$4
shift 4
folder=$(dirname "$0")/../examples/pipelines
end=$((SECONDS + seconds))

measure() { # PROGRAM [OPTION…], after the options of all programs
    local left=$((end - SECONDS))
    [ "$left" -gt 0 ] || return 0
    local program=$1
    shift
    "$tilewright" train collect --target "$target" --time "${left}s" --group pipelines --data "$file" \
        --program "$folder/$program" "${options[@]}" "$@"
}

options=("$@")
measure harris.tw:harris@H=1280,W=768
measure unsharp.tw:unsharp@H=1280,W=768
measure hist.tw:hist@H=1280,W=768
measure iir_blur.tw:iir_blur@H=1280,W=768
measure camera_pipe.tw:camera_pipe@H=1000,W=1312
measure stencil_chain.tw:stencil_chain@H=640,W=384,stages=16
measure max_filter.tw:max_filter@H=640,W=384,radius=26
measure bilateral_grid.tw:bilateral_grid@H=1280,W=768,s_sigma=8 --in r_sigma=0.1
measure conv_layer.tw:conv_layer@N=2,H=40,W=50,CI=64,CO=64
measure mat_mul.tw:mat_mul@M=512,N=512,K=512
measure depthwise_separable_conv.tw:depthwise_separable_conv@N=2,H=112,W=112,C=32,K=16,M=1
measure nl_means.tw:nl_means@H=320,W=192,patch=7,search=7
measure interpolate.tw:interpolate@H=1280,W=768,levels=10
measure local_laplacian.tw:local_laplacian@H=640,W=384,intensities=8,levels=8
measure lens_blur.tw:lens_blur@H=160,W=96,slices=16,focus=7,samples=16,R=5,levels=6
measure bgu.tw:bgu@H=1280,W=768,h=160,w=96,cell=16,factor=8 --in r_sigma=0.125
