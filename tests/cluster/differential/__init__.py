"""The differential suite: random small clusters and pods by seed, judged by kube-scheduler and by Berth.

  case.py         a seed becomes a Case: objects that are there from the start, and pods that come one by one
  nodes.py, pods.py, volumes.py, world.py, draw.py     what a Case is made of
  recorder.py     gives a Case to a real kube-scheduler, one pod at a time, and notes what became of each
  records.py      those outcomes as small files, recorded/*.json
  replay.py       gives the same state and the same pod to `berth simulate`, and compares
  __main__.py     the tool: record, replay, show, coverage

A pod is judged against a state that is exactly known: what ran before it is where kube-scheduler put it, and a pod that
was refused is taken away again. So one wrong verdict never spoils those after it, and each can be reproduced alone.
"""
