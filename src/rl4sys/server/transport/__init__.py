"""How calls reach the service: gRPC, in process, and metrics over HTTP."""
