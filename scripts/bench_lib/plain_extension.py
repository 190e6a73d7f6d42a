"""The least that an extension can be: it imports nothing, so starting it is starting an interpreter."""

import sys

print('{"type":"hello","protocol_version":2,"version":"1.0.0","name":"' + sys.argv[1] + '"}', flush=True)
for line in sys.stdin:
    if '"hello_ack"' in line:
        print('{"type":"ready"}', flush=True)
    elif '"shutdown"' in line:
        print('{"type":"shutdown_ack"}', flush=True)
        break
