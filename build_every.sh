set -u
cd /tmp/wt/every; mkdir -p /tmp/every; L=$(.venv/bin/kernelpack emulate --libraries); NV=/work/main/.venv/lib/python3.11/site-packages/nvidia/cu13
for f in tests/emulate/everyday/*.cu; do n=$(basename $f .cu); $NV/bin/nvcc -std=c++17 -O2 -lineinfo -gencode arch=compute_90,code=[compute_90,sm_90] --compress-mode=none -cudart none $f -o /tmp/every/$n -L$L -lcudart -lcuda & done; wait
for f in tests/emulate/everyday/*.cu; do n=$(basename $f .cu); timeout 60 .venv/bin/kernelpack emulate --device h100 /tmp/every/$n > /tmp/every/$n.out 2> /tmp/every/$n.err; echo $n $?; done
