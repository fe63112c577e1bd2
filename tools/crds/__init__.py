"""The CustomResourceDefinitions of Kueue's API, as tables from which tools/generate_crds.py writes deploy/crds."""
