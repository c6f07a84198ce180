#!/usr/bin/env python3
"""Stands in for the python that runs cuda/bench/peers.py: a launch takes half a second, "math" can't, "triton" is off,
"fa3" ends the program, "fa4" answers nonsense."""
import json
import sys

assert sys.argv[-1].endswith("cuda/bench/peers.py"), sys.argv
for line in sys.stdin:
    question = json.loads(line)
    assert set(question) == {"peer", "cell", "launches"}
    peer, launches = question["peer"], question["launches"]
    if peer == "math":
        answer = json.dumps({"why": "there is no room for S and P"})
    elif peer == "fa3":
        print("something\nfa3 has no kernels here", file=sys.stderr)
        sys.exit(3)
    elif peer == "fa4":
        answer = "nonsense"
    elif launches == 0:
        answer = json.dumps({"version": "1.2", "error": 2e-3 if peer == "triton" else 1e-4, "tolerance": 1e-3})
    else:
        answer = json.dumps({"seconds": 0.5 * launches})
    print(answer, flush=True)
