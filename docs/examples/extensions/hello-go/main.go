// An extension in Go with nothing but the standard library: /hello and /cwd.
//
// Frames are lines of JSON on stdin and stdout. Build it with: go build -o hello-go .
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// frame holds the fields of all the frames that this extension reads.
type frame struct {
	Type            string `json:"type"`
	ID              string `json:"id"`
	Name            string `json:"name"`
	Args            string `json:"args"`
	Cwd             string `json:"cwd"`
	ProtocolVersion int    `json:"protocol_version"`
}

// say writes one frame as one line. The encoder puts a line end after it, and escapes what could be taken for one.
func say(fields map[string]any) error {
	return json.NewEncoder(os.Stdout).Encode(fields)
}

// answer is what a command gives back: an action and what belongs to it.
type answer map[string]any

func hello(args string) answer {
	name := "me"
	if args != "" {
		name = args
	}
	return answer{"action": "prompt", "prompt": fmt.Sprintf("Greet %s in one short sentence.", name)}
}

func register(cwd string) map[string]func(string) answer {
	commands := map[string]func(string) answer{"hello": hello}
	say(map[string]any{"type": "register_command", "name": "hello", "description": "have the agent greet someone"})
	if cwd != "" { // known only after hello_ack: what is registered may depend on the host
		commands["cwd"] = func(string) answer { return answer{"action": "display", "display": cwd} }
		say(map[string]any{"type": "register_command", "name": "cwd", "description": "show the project's directory"})
	}
	say(map[string]any{"type": "ready"})
	return commands
}

func run(command func(string) answer, asked frame) {
	response := answer{"action": "noop", "error": "unknown command " + asked.Name}
	if command != nil {
		response = command(asked.Args)
	}
	response["type"], response["id"] = "command_response", asked.ID
	say(response)
}

func serve(lines *bufio.Reader) error {
	say(map[string]any{
		"type": "hello", "protocol_version": 2, "name": "hello-go", "version": "1.0.0", "capabilities": []string{"commands"},
	})
	var commands map[string]func(string) answer
	for {
		line, err := lines.ReadString('\n') // of any length, unlike bufio.Scanner
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var got frame
		if json.Unmarshal([]byte(line), &got) != nil && got.Type == "" {
			fmt.Fprintln(os.Stderr, "ignored a line that is no frame:", strings.TrimSpace(line))
			continue
		}
		switch got.Type {
		case "hello_ack":
			if got.ProtocolVersion != 2 {
				return fmt.Errorf("unsupported host protocol version %d", got.ProtocolVersion)
			}
			commands = register(got.Cwd)
		case "command_invoked":
			run(commands[got.Name], got)
		case "shutdown":
			return say(map[string]any{"type": "shutdown_ack"})
		}
	}
}

func main() {
	if err := serve(bufio.NewReader(os.Stdin)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
