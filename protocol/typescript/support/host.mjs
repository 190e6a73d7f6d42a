/** The host's side of the wire, for tests: an extension in this process, and frames. */

import assert from "node:assert/strict";

export const ACK = {
  type: "hello_ack",
  protocol_version: 2,
  zut_version: "9.9",
  provider: "scripted",
  model: "parrot",
  cwd: "/home/ada/project",
  extension_dir: "/ext",
  data_dir: "/ext",
};

/** Things that come when they come. */
class Channel {
  #items = [];
  #waiting = [];
  #closed = false;

  put(item) {
    const waiter = this.#waiting.shift();
    if (waiter) waiter({ value: item, done: false });
    else this.#items.push(item);
  }

  close() {
    this.#closed = true;
    for (const waiter of this.#waiting.splice(0)) waiter({ value: undefined, done: true });
  }

  next() {
    if (this.#items.length) return Promise.resolve({ value: this.#items.shift(), done: false });
    if (this.#closed) return Promise.resolve({ value: undefined, done: true });
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  [Symbol.asyncIterator]() {
    return this;
  }
}

export class FakeHost {
  #input = new Channel();
  #output = new Channel();

  constructor(extension) {
    this.extension = extension;
    /** Settles when the extension has ended. */
    this.ended = extension
      .serve(this.#input, (line) => this.#output.put(line))
      .finally(() => this.#output.close());
    this.ended.catch(() => {}); // a test that wants the error awaits it
  }

  sendBytes(data) {
    this.#input.put(Buffer.from(data));
  }

  send(type, fields = {}) {
    this.sendBytes(`${JSON.stringify({ ...fields, type })}\n`);
  }

  /** The next line, with its end; undefined when the extension has ended. */
  async line() {
    return (await this.#output.next()).value;
  }

  async frame() {
    const line = await this.line();
    assert.ok(line?.endsWith("\n"), `the extension has ended, or wrote half a line: ${line}`);
    assert.equal(line.indexOf("\n"), line.length - 1, "one write is one line");
    return JSON.parse(line);
  }

  /** Every frame until the extension has ended. */
  async rest() {
    const frames = [];
    for await (const line of this.#output) frames.push(JSON.parse(line));
    return frames;
  }

  /** The handshake; every frame from `hello` to `ready`. */
  async greet(more = {}) {
    const frames = [await this.frame()];
    this.send("hello_ack", { ...ACK, ...more });
    while (frames.at(-1).type !== "ready") frames.push(await this.frame());
    return frames;
  }

  call(name, args = {}, id = "c1") {
    this.send("tool_call", { id, name, args });
    return this.frame();
  }

  command(name, args = "", id = "c1") {
    this.send("command_invoked", { id, name, args });
    return this.frame();
  }

  ask(event, fields = {}, id = "c1") {
    this.send("event_intercept", { ...fields, id, event });
    return this.frame();
  }

  endStdin() {
    this.#input.close();
  }

  /** End stdin and wait for the end. */
  async finish() {
    this.endStdin();
    await this.ended;
  }
}

export const textOf = (frame) => frame.content.map((block) => block.text ?? "").join("");

/** What is written to stderr while `run` runs. */
export async function logOf(run) {
  const write = process.stderr.write;
  let log = "";
  process.stderr.write = (text) => {
    log += text;
    return true;
  };
  try {
    await run();
  } finally {
    process.stderr.write = write;
  }
  return log;
}
