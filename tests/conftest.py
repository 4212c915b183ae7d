"""Settings of every test."""

import os
import signal

from fedrepro import arithmetic

# As in training: one thread a process; toy models otherwise spend their time waiting for threads (70 times slower on a busy
# machine). Set before torch is imported, and inherited by the processes that tests start.
os.environ["OMP_NUM_THREADS"] = "1"

# What users get; before NumPy and torch are imported. Tests of native arithmetic start processes of their own.
arithmetic.settle("native" if arithmetic.missing() else "portable")

# A shell has what it starts in the background ignore Ctrl-C, and whatever that starts too: tests would interrupt in vain.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
