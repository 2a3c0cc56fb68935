"""What a newcomer waits for: python python/measure.py, where nothing but the wheel is installed."""

import subprocess
import sys
import time

#: Milliseconds that the interpreter may take to import the package, beside what it takes itself.
IMPORT_MS = 150
#: Seconds until the first result of the intermittent benchmark on a preset.
FIRST_RESULT_S = 3


def seconds(code: str, times: int) -> float:
    """The least of several new interpreters."""

    def once() -> float:
        began = time.monotonic()
        subprocess.run([sys.executable, "-I", "-c", code], check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - began

    return min(once() for _ in range(times))


empty = seconds("pass", 10)
imported = 1000 * (seconds("import percid", 10) - empty)
first = seconds("import percid.sim as s; s.run('epyc-9654', 'intermittent', 'percid-table', 1)", 3)
print(f"import percid: {imported:.0f} ms (limit {IMPORT_MS})")
print(f"first result of the intermittent benchmark: {first:.2f} s (limit {FIRST_RESULT_S})")
