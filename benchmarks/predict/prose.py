"""What docs/blackwell.md says in words."""

TOP = """\
# What a B200 should take, told by each kernel's own PTX

<!-- Written by benchmarks/predict/page.py from benchmarks/results/predicted*.json. -->

No Blackwell GPU has run our kernels: **every time of ours on a B200 is predicted.** A few clusters
of a launch run on the emulator at their real size. What each warp and each unit did is recorded,
and replayed in the time of a device: its rates, latencies and clock
([devices.toml](../kernelpack/predict/devices.toml) says where each number is from). Arithmetic
makes the grid from the clusters ([ADR 0044](adr/0044-a-recording-replayed-in-virtual-time.md)).

So how far can it be trusted? First the same on an H200, where we measured; then kernels of others,
with the times that they published for a B200; then ours.

[fitted.toml](../benchmarks/predict/fitted.toml) lists the points that a search for numbers may see;
all others are *held out*, among them each that was recorded later. A few numbers of the H200
(latencies of loads, the launch, HBM) were searched for on those listed alone; most others were
measured apart from all of them. The rules of the model, and the numbers of the B200, were chosen
with every point in sight: **what is held out is no blind test.** [What was blind
once](#predicted-blind) is further down.

*Error* is predicted over measured, less 1; *lean* is its mean with its sign. *Binds* is the unit
that works for 0.75 of the time; of several the one that saves most where it is twice as fast. Where
none does: what saves most, one kind of unit that is twice as fast, or latency, all of them half as
long. The launch, where it is half of the time.
"""
ON_HOPPER = """\
Every time that was measured is here: of our kernels, and of FlashMLA on the same shapes. FlashMLA
pads heads, so several of its points are one launch. Only short recordings have a band. Our decode
steps, several launches of a few microseconds, come out too short. A single row to norm or to
quantise comes out too long: what a launch itself takes is one number, of launches that fill the
card, and a programmatic launch of one CTA takes half of it. What binds is known of a launch in
which a copy of its bytes takes 0.8 of the time: HBM. Of the quantiser both HBM and issue work for
nine tenths of the time, and issue is named.
"""
ON_BLACKWELL = """\
**FlashMLA, FlashAttention 4 and GEMMs by tcgen05 in bf16 and NVFP4 are off by 4 to 16 % in the
mean, cuDNN's attention by 20 %: over many keys it comes out up to a third too slow.** The worst is
ThunderKittens' third step, which shared memory binds: a third too slow. Its fourth, WMMA, comes out
a quarter too fast. FlashMLA's seven points are five launches of one kernel. Where a source repeats
a launch on the same arrays, L2 is taken to have them, if there is room for them and for the
results. Of `points.toml` not here: four launches of FlashAttention 4 (64 values, 8192 and 16384
tokens), whose recording takes minutes each.

Of what binds, two of the statements were mended when predictions were compared: `v1a` and `v1b` had
been put down as latency, and their successor, with longer rows of TMA alone, is 2.7 times as fast.
"""
CANNOT = """\
## What it cannot tell

- **The clock under power.** Tensor cores at work slow it by a quarter, differently on each card and
  with the data: zeros take less power than random numbers. That alone is ±10 to 15 %.
- **Numbers that nobody publishes** of a B200: how late L2 answers, how fast it gives scattered
  rows. The band is the same replay with latencies 0.8 to 1.25 of the middle, 1.25 to 0.75 of its
  bytes a cycle from L2, and the light clock to that of full load.
- **Which rows L2 still has.** Gathers are counted as chance has them. A server's lists may be
  kinder.
- **What depends on timing itself**: which CTA takes which tile where a counter or the hardware
  hands them out, who wins a lock, how often a loop polls. One order is recorded and replayed.
- **What comes before and after**: a launch's own time is one number. Below 5 µs it is most of the
  prediction.
- **What the machine code does within a block.** Slots are counted in it; how far ptxas moved loads
  ahead of their uses is guessed.
- **Values.** Inputs are zeros, so a kernel that rescales when a maximum rises never does.
- Anything that we did not think of. Run [what an owner of a B200 should run
  first](blackwell_review.md).
"""
