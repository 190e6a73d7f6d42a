#!/usr/bin/env node
// An extension in plain Node, without an SDK: /clock [Area/City] and /remind SECONDS TEXT.

const emit = (frame) => process.stdout.write(`${JSON.stringify(frame)}\n`);

const commands = {
  clock: {
    description: "the time, here or elsewhere: /clock Asia/Tokyo",
    run(args) {
      const timeZone = args || undefined;
      try {
        const time = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium", dateStyle: "full", timeZone });
        return { action: "display", display: time.format() };
      } catch (error) {
        return { error: `${error.message}: give an area and a city, such as Asia/Tokyo` };
      }
    },
  },
  remind: {
    description: "a note and a bell later: /remind 300 tea",
    run(args) {
      const [, seconds, text] = args.match(/^(\d+)\s+(.+)$/s) ?? [];
      if (!text) return { error: "say when and what: /remind 300 tea" };
      setTimeout(() => {
        emit({ type: "notify", level: "info", message: text });
        emit({ type: "alert", kind: "bell", reason: "reminder" });
      }, 1000 * Number(seconds));
      return { action: "noop" }; // the user hears of it later
    },
  },
};

const handlers = {
  hello_ack({ protocol_version }) {
    if (protocol_version !== 2) throw new Error(`unsupported host protocol version ${protocol_version}`);
    for (const [name, { description }] of Object.entries(commands)) emit({ type: "register_command", name, description });
    emit({ type: "ready" });
  },
  command_invoked({ id, name, args }) {
    emit({ type: "command_response", id, ...commands[name].run(args) });
  },
  shutdown() {
    emit({ type: "shutdown_ack" });
    process.exit(0);
  },
};

function handle(line) {
  let frame = {};
  try {
    frame = JSON.parse(line);
  } catch {
    console.error("ignored a line that is no frame:", line); // stderr is the log
  }
  handlers[frame.type]?.(frame);
}

// Lines end at LF and nowhere else. (Node's own readline also splits at U+2028, inside of texts.)
let rest = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (chunk) => {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop();
  lines.filter(Boolean).forEach(handle);
});
process.stdin.on("end", () => process.exit(0)); // the host is gone; reminders have nobody to go to

emit({ type: "hello", protocol_version: 2, name: "clock", version: "1.0.0", capabilities: ["commands", "alerts"] });
