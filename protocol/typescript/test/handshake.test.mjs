/** From `hello` to `ready`: the order of frames, and hosts that are none. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Extension, HostError } from "../src/extension.mjs";
import { ACK, FakeHost, logOf } from "../support/host.mjs";

async function refusal(first) {
  const host = new FakeHost(new Extension("x", "1.0.0"));
  const hello = await host.frame();
  assert.deepEqual([hello.type, hello.protocol_version], ["hello", 2]);
  host.sendBytes(`${first}\n`);
  const error = await host.ended.catch((caught) => caught);
  assert.ok(error instanceof HostError);
  assert.deepEqual(await host.rest(), []);
  return error.message;
}

test("K1: hello is first, and a host of another version ends the conversation", async () => {
  assert.match(await refusal('{"type":"hello_ack","protocol_version":1}'), /unsupported host protocol version 1 /);
});

test("another first frame is refused", async () => {
  assert.match(await refusal('{"type":"hello_ack"}'), /version undefined/);
  assert.match(await refusal('{"type":"hello_ack","protocol_version":"2"}'), /version "2"/);
  assert.match(await refusal('{"type":"shutdown"}'), /must be hello_ack, not "shutdown"/);
  assert.match(await refusal("[]"), /it is no object/);
  assert.match(await refusal("hi"), /must be hello_ack/);
});

test("a host that goes before it answers is a clean end", async () => {
  const host = new FakeHost(new Extension("x"));
  await host.frame();
  await host.finish();
  assert.deepEqual(await host.rest(), []);
});

test("registrations keep their order, one subscription follows, then ready", async () => {
  const ext = new Extension("x", "1.2.3", { capabilities: ["alerts"] });
  ext.command("b", "second letter", () => {});
  ext.tool({ name: "t", schema: { type: "object" } }, () => {});
  ext.command("a", "", () => {});
  ext.on(["turn_start", "turn_end"], () => {});
  ext.on("turn_end", () => {});
  ext.interceptToolCall(() => {});
  const host = new FakeHost(ext);
  const [hello, ...frames] = await host.greet();
  await host.finish();

  assert.deepEqual(hello, {
    type: "hello",
    protocol_version: 2,
    name: "x",
    version: "1.2.3",
    capabilities: ["commands", "tools", "events", "alerts"],
  });
  assert.deepEqual(frames, [
    { type: "register_command", name: "b", description: "second letter" },
    { type: "register_tool", name: "t", description: "", schema: { type: "object" } },
    { type: "register_command", name: "a", description: "" },
    { type: "subscribe", events: ["turn_start", "turn_end"], intercept: ["tool_call"] },
    { type: "ready" },
  ]);
});

test("without subscriptions none is sent", async () => {
  const host = new FakeHost(new Extension("x"));
  assert.deepEqual((await host.greet()).map((frame) => frame.type), ["hello", "ready"]);
  await host.finish();
});

test("K2: onHello may register before ready, and knows the host", async () => {
  const ext = new Extension("x");
  ext.onHello(async (host) => ext.command("cwd", `shows ${host.cwd}`, () => ext.host.cwd));
  const host = new FakeHost(ext);
  const session = { id: "b1", path: "", cwd: "/p", fork_point: 0 };
  const frames = await host.greet({ session });
  assert.deepEqual(frames[1], { type: "register_command", name: "cwd", description: "shows /home/ada/project" });
  assert.equal((await host.command("cwd")).display, "/home/ada/project");
  assert.deepEqual(ext.host, {
    version: "9.9",
    provider: "scripted",
    model: "parrot",
    cwd: "/home/ada/project",
    dataDir: "/ext",
    session,
  });
  await host.finish();
});

test("ready is sent whatever fails", async () => {
  const log = await logOf(async () => {
    const ext = new Extension("x");
    ext.onHello(() => {
      throw new Error("no config");
    });
    ext.tool({ name: "big", schema: { type: "object", description: "x".repeat(5_000_000) } }, () => {});
    ext.command("still-here", "", () => {});
    const host = new FakeHost(ext);
    assert.deepEqual((await host.greet()).map((frame) => frame.type), ["hello", "register_command", "ready"]);
    await host.finish();
  });
  assert.match(log, /no config/);
  assert.match(log, /register_tool big/);
});

test("late declarations are sent at once", async () => {
  const ext = new Extension("x");
  ext.command("grow", "", () => {
    ext.tool({ name: "late" }, () => "here");
    ext.on("turn_end", () => {});
    ext.interceptTurnStart(() => {});
    return "grown";
  });
  const host = new FakeHost(ext);
  await host.greet();
  const frames = [await host.command("grow"), await host.frame(), await host.frame(), await host.frame()];
  assert.deepEqual(
    frames.map((frame) => frame.type),
    ["register_tool", "subscribe", "subscribe", "command_response"],
  );
  assert.equal((await host.call("late")).content[0].text, "here");
  await host.finish();
});

test("tool_cancel is said when a tool can use it", async () => {
  for (const [handler, expected] of [
    [() => "", ["tools"]],
    [(args) => args.text, ["tools"]],
    [(args, call) => call.id, ["tools", "tool_cancel"]],
  ]) {
    const ext = new Extension("x");
    ext.tool({ name: "t" }, handler);
    const host = new FakeHost(ext);
    assert.deepEqual((await host.frame()).capabilities, expected);
    await host.finish();
  }
});

test("a hello_ack of any shape is survived", async () => {
  for (const more of [{ session: null }, { session: [] }, { cwd: 7, zut_version: null }]) {
    const host = new FakeHost(new Extension("x"));
    await host.frame();
    host.send("hello_ack", { protocol_version: ACK.protocol_version, ...more });
    assert.deepEqual(await host.frame(), { type: "ready" });
    await host.finish();
  }
});

test("speaking before run() is a mistake with words", () => {
  assert.throws(() => new Extension("x").notify("hi"), /notify before run\(\).*onHello/);
});
