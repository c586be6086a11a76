"""The HTTP server of llama.cpp, as the wheel of xllamacpp has it, until its standard input ends: with who started it.

    serve.py MODEL.gguf PORT CONTEXT SLOTS THREADS

The model's name is that of its file. A seed and a temperature are set here, for requests that name none: what a
model says is then the same each time, as far as threads allow."""

import os
import sys

import xllamacpp

model, port, context, slots, threads = sys.argv[1], *map(int, sys.argv[2:6])
wanted = xllamacpp.CommonParams()
wanted.model.path = model
wanted.model_alias = {os.path.basename(model).removesuffix(".gguf")}
wanted.hostnames = ["127.0.0.1"]
wanted.port = port
wanted.n_ctx = context * slots
wanted.n_parallel = slots
wanted.kv_unified = False  # each slot has its own window
wanted.cache_ram_mib = 256
wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = threads
wanted.cpuparams.poll = wanted.cpuparams_batch.poll = 0
wanted.use_jinja = wanted.endpoint_props = wanted.endpoint_slots = True
wanted.sampling.seed = 28
wanted.sampling.temp = 0.2
wanted.verbosity = 1
server = xllamacpp.Server(wanted)
print("listening", server.listening_address, flush=True)
sys.stdin.read()
os._exit(0)  # it does not wait for a reply that is being written
