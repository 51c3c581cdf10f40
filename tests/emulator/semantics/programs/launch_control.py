# ruff: noqa: E501  (a table of programs: one a line)
"""Clusters that take over the work of others."""

from tests.emulator.semantics.programs.program import Program

LAUNCH_CONTROL = [
    Program(
        "a cluster takes over the next one",
        """mov.u32 %r30, bar; setp.eq.u32 %p0, %thread, 0; @%p0 mbarrier.init.shared.b64 [%r30], 1; @%p0 fence.mbarrier_init.release.cluster; bar.sync 0; mov.u32 %r29, s;
        mov.u32 %r10, 0; mov.u32 %r11, 0;
        T: atom.global.add.u32 %r12, [%mine], 1;
        @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r30], 16;
        @%p0 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r29], [%r30];
        X: mbarrier.try_wait.parity.shared.b64 %p1, [%r30], %r11; @!%p1 bra X;
        xor.b32 %r11, %r11, 1;
        ld.shared.b128 %q0, [%r29];
        clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q0;
        @%p2 clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r13, %r14, %r15, _}, %q0;
        @%p2 clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r16, %q0;
        @%p2 clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r17, %q0;
        @%p2 clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 %r18, %q0;
        bar.sync 0;
        @%p2 bra T;""",
        [3] * 32,
        grid=3,
    ),
]
