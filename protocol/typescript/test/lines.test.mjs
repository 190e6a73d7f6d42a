/** Lines: split at LF and nowhere else, written whole, safe for any text. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Extension } from "../src/extension.mjs";
import { FakeHost, logOf, textOf } from "../support/host.mjs";

const SEPARATORS = "\u2028 \u2029 \u0085 \v \f \x1c \r é 😀";

async function echo() {
  const ext = new Extension("x");
  ext.tool({ name: "echo" }, ({ text }) => text);
  ext.tool({ name: "half" }, () => "\ud83d");
  const host = new FakeHost(ext);
  await host.greet();
  return host;
}

test("separators are ordinary characters in both directions, whatever the bytes arrive like", async () => {
  const frame = { type: "tool_call", id: "c1", name: "echo", args: { text: SEPARATORS } };
  const bytes = Buffer.from(`${JSON.stringify(frame)}\r\n`);
  for (const size of [1, 2, 3, 7, bytes.length]) {
    const host = await echo();
    for (let at = 0; at < bytes.length; at += size) host.sendBytes(bytes.subarray(at, at + size));
    assert.equal(textOf(await host.frame()), SEPARATORS);
    await host.finish();
  }
});

test("many frames in one chunk, and a huge one", async () => {
  const host = await echo();
  const line = (id, text) => `${JSON.stringify({ type: "tool_call", id, name: "echo", args: { text } })}\n`;
  host.sendBytes(line("a", "1") + line("b", "x".repeat(3_000_000)) + line("c", "3"));
  const frames = [await host.frame(), await host.frame(), await host.frame()];
  assert.deepEqual(
    frames.map((frame) => [frame.id, textOf(frame).length]),
    [
      ["a", 1],
      ["b", 3_000_000],
      ["c", 1],
    ],
  );
  await host.finish();
});

test("lone surrogates do no harm", async () => {
  const host = await echo();
  host.sendBytes('{"type":"tool_call","id":"c1","name":"echo","args":{"text":"\\ud83d|\\ud83d\\ude00|\\udc00"}}\n');
  assert.equal(textOf(await host.frame()), "\ufffd|😀|\ufffd");
  host.send("tool_call", { id: "c2", name: "half", args: {} });
  assert.match(await host.line(), /\\ud83d/);
  await host.finish();
});

test("lines that are no frames are skipped with a word, blank ones without", async () => {
  for (const line of ["hello", "[]", '"text"', "null", "{", "[".repeat(100_000)]) {
    const log = await logOf(async () => {
      const host = await echo();
      host.sendBytes(`\n  \r\n${line}\n`);
      host.send("nobody_knows_this");
      assert.equal(textOf(await host.call("echo", { text: "alive" })), "alive");
      await host.finish();
    });
    assert.equal(log.match(/ignored a line from the host/g).length, 1);
    assert.equal(log.match(/unknown type "nobody_knows_this"/g).length, 1);
  }
});

test("a last line without LF counts", async () => {
  const host = await echo();
  host.sendBytes('{"type":"shutdown"}');
  host.endStdin();
  assert.deepEqual(await host.rest(), [{ type: "shutdown_ack" }]);
});
