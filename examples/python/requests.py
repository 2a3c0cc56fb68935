"""Threads that handle requests: what each did is counted, timed, and its buffers are lent by a stack.

    python3 requests.py
"""

import threading
import time

import percid_ctypes as percid

THREADS = 4
REQUESTS = 20000
BUFFERS = 64

handled = percid.Counter()
failed = percid.Counter()
durations = percid.Histogram()
buffers = percid.Stack()


def handle(number):
    """A request borrows a buffer; without one it is refused."""
    buffer = buffers.pop()
    if buffer is None:
        failed.add()
        return
    start = time.perf_counter_ns()
    sum(range(number % 100))
    durations.record(time.perf_counter_ns() - start)
    handled.add()
    buffers.push(buffer)


def work():
    for number in range(REQUESTS):
        handle(number)


def main():
    print(f"percid {percid.version()}, IDs from the source {percid.source()}")
    for number in range(1, BUFFERS + 1):
        buffers.push(number)
    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    count, (median, most) = durations.quantiles(0.5, 0.99)
    print(f"{handled.sum()} handled, {failed.sum()} without a buffer, {THREADS * REQUESTS} in all")
    print(f"half took up to {median} ns, 99 % up to {most} ns")
    left = sorted(buffers.drain())
    assert handled.sum() + failed.sum() == THREADS * REQUESTS
    assert count == handled.take() and handled.sum() == 0
    assert left == list(range(1, BUFFERS + 1)), left
    print(f"all {len(left)} buffers are back")


if __name__ == "__main__":
    main()
