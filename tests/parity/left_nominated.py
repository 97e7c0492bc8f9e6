#!/usr/bin/env python3
"""Prints the cases whose only difference is that kube-scheduler leaves a pod nominated to a node, which is placed there by ours.

left_nominated.py CASES OUTPUT

A pod has several victims on a node, and the plugin that refused it counts the deletion of one of them alone, such as NodePorts the one with its port. If that is
not the last one, kube-scheduler hears of it while it still deletes the others, and tries the pod again after five minutes (docs/reference/divergences.md).
"""
import json, os, re, sys

cases, output = sys.argv[1:]
differences = {}
for line in open(output):
    if line.startswith("--- "):
        name = line[4:].split(":")[0]
        differences[name] = []
    elif placement := re.match(r"    placement (\S+) (\S+): want (.*) got (.*)", line):
        differences[name].append(placement.groups())
for name, placements in differences.items():
    recorded = json.load(open(os.path.join(cases, name + ".json")))["recorded"]["pods"]
    nominated = lambda pod: repr(recorded.get(pod, {}).get("nominatedNodeName"))
    if placements and all(kind == "pod" and want == "None" and got == nominated(pod) for kind, pod, want, got in placements):
        print(name)
