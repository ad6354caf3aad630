"""Models that the user brings: a file with a function that builds one. That of an architecture of
Hugging Face transformers is models/hf.py.

A user's file is code: it is imported and runs as the user who measures it. `reference` needs no
torch, so that the plan can read references and find the files behind them.
"""
