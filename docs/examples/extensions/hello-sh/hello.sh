#!/bin/sh
# An extension in shell: jq takes frames apart and puts them together, so nothing has to be quoted by hand.
# It needs jq. Its frames are small, and a person waits for each: a new process for each of them is quick enough.

cwd=.

# What jq makes of a frame: field '.name' "$frame"
field() { printf '%s' "$2" | jq -r "$1"; }

greeting() { # the answer to /hellosh
    printf '%s' "$1" | jq -c '{type: "command_response", id, action: "prompt",
        prompt: ("Greet " + (if .args == "" then "me" else .args end) + " in one short sentence.")}'
}

disk_free() { # the answer to the tool; what df says on stderr is the reason when it fails
    if report=$(cd "$cwd" && df -h . 2>&1); then failed=false; else failed=true; fi
    printf '%s' "$1" | jq -c --arg report "$report" --argjson failed "$failed" \
        '{type: "tool_result", id, is_error: $failed, content: [{type: "text", text: $report}]}'
}

echo '{"type":"hello","protocol_version":2,"name":"hello-sh","version":"1.0.0","capabilities":["commands","tools"]}'

while IFS= read -r frame; do
    case $(field .type "$frame") in
    hello_ack)
        [ "$(field .protocol_version "$frame")" = 2 ] || { echo "unsupported host" >&2; exit 1; }
        cwd=$(field .cwd "$frame") # the extension itself runs in its own directory
        echo '{"type":"register_command","name":"hellosh","description":"have the agent greet someone"}'
        echo '{"type":"register_tool","name":"disk_free","description":"How full the disk of the project is.",
               "schema":{"type":"object","properties":{}}}' | jq -c .
        echo '{"type":"ready"}'
        ;;
    command_invoked) greeting "$frame" ;;
    tool_call) disk_free "$frame" ;;
    shutdown)
        echo '{"type":"shutdown_ack"}'
        exit 0
        ;;
    esac
done
