"""Who talks to the daemon: rpc, print, stream, json."""
