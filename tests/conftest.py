"""Settings of every test."""

import os

# As in training: one thread a process; toy models otherwise spend their time waiting for threads (70 times slower on a busy
# machine). Set before torch is imported, and inherited by the processes that tests start.
os.environ["OMP_NUM_THREADS"] = "1"
