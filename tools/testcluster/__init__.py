"""A real Kubernetes control plane for tests: see cluster.py, and tools/cluster.py for the command line."""

from testcluster.cluster import BinariesMissing, Cluster, ClusterError, find_binaries
from testcluster.components import COMPONENTS, Options
from testcluster.rest import ApiError

__all__ = ["COMPONENTS", "ApiError", "BinariesMissing", "Cluster", "ClusterError", "Options", "find_binaries"]
