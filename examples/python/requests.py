"""Threads that handle requests: counted, timed, and with idle buffers kept on a stack.

    python3 requests.py
"""

import itertools
import threading
import time

import percid_ctypes as percid

THREADS = 4
REQUESTS = 20000

handled = percid.Counter()
durations = percid.Histogram()
idle_buffers = percid.Stack()
new_buffers = itertools.count(1)
made = percid.Counter()


def handle(number):
    # What another CPU keeps is not found: a stack is a cache of what is idle, and no queue.
    buffer = idle_buffers.pop()
    if buffer is None:
        buffer = next(new_buffers)
        made.add()
    start = time.perf_counter_ns()
    sum(range(number % 100))
    durations.record(time.perf_counter_ns() - start)
    handled.add()
    idle_buffers.push(buffer)


def work():
    for number in range(REQUESTS):
        handle(number)


def main():
    print(f"percid {percid.version()}, IDs from the source {percid.source()}")
    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    count, (median, most) = durations.quantiles(0.5, 0.99)
    print(f"{handled.sum()} handled; half took up to {median} ns, 99 % up to {most} ns")
    buffers = idle_buffers.drain()
    print(f"{len(buffers)} buffers were made for {THREADS} threads")
    assert count == handled.take() == THREADS * REQUESTS and handled.sum() == 0
    assert sorted(buffers) == list(range(1, made.sum() + 1)), buffers


if __name__ == "__main__":
    main()
