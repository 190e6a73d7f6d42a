/** Calls that are given up, and the end: `tool_cancel`, `shutdown` and EOF reach the handlers (U12). */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Extension, GRACE_MS } from "../src/extension.mjs";
import { FakeHost, textOf } from "../support/host.mjs";

/** A host that has called a tool which waits until it is cancelled; `ended` tells of that. */
async function waiting() {
  const ext = new Extension("x");
  let started;
  const begun = new Promise((resolve) => {
    started = resolve;
  });
  const told = [];
  ext.tool({ name: "wait" }, async (_, { signal }) => {
    await new Promise((resolve) => {
      signal.addEventListener("abort", resolve);
      started();
    });
    told.push("cancelled");
    return "too late";
  });
  ext.tool({ name: "echo" }, ({ text }) => text);
  const host = new FakeHost(ext);
  await host.greet();
  host.send("tool_call", { id: "c1", name: "wait", args: {} });
  await begun;
  return { host, told };
}

test("U12: tool_cancel reaches the handler, its result is not sent, the next call works", async () => {
  const { host, told } = await waiting();
  host.send("tool_cancel", { id: "unknown" });
  host.send("tool_cancel", { id: "c1" });
  host.send("tool_cancel", { id: "c1" });
  assert.equal(textOf(await host.call("echo", { text: "alive" }, "c2")), "alive");
  assert.deepEqual(told, ["cancelled"]);
  host.endStdin();
  assert.deepEqual(await host.rest(), []);
});

test("U12: shutdown is acknowledged, the handler is told, nothing comes after it", async () => {
  const { host, told } = await waiting();
  host.send("shutdown");
  assert.deepEqual(await host.rest(), [{ type: "shutdown_ack" }]);
  assert.deepEqual(told, ["cancelled"]);
});

test("U12: EOF cancels the handler too, nothing is written", async () => {
  const { host, told } = await waiting();
  host.endStdin();
  assert.deepEqual(await host.rest(), []);
  assert.deepEqual(told, ["cancelled"]);
});

test("a handler that does not listen delays the end by the grace and no longer", async () => {
  const ext = new Extension("x");
  ext.command("deaf", "", () => new Promise(() => {}));
  const host = new FakeHost(ext);
  await host.greet();
  host.send("command_invoked", { id: "c1", name: "deaf", args: "" });
  const began = performance.now();
  host.send("shutdown");
  assert.deepEqual(await host.frame(), { type: "shutdown_ack" });
  assert.ok(performance.now() - began < GRACE_MS / 2);
  await host.ended;
  const took = performance.now() - began;
  assert.ok(took > GRACE_MS * 0.9 && took < GRACE_MS * 2, `${took} ms`);
});

test("a call that is given up while it waits for an event's handler never begins", async () => {
  const ext = new Extension("x");
  let release;
  const gate = new Promise((resolve) => {
    release = resolve;
  });
  const ran = [];
  ext.on("turn_start", () => gate);
  ext.tool({ name: "tool" }, ({ name }) => {
    ran.push(name);
    return name;
  });
  const host = new FakeHost(ext);
  await host.greet();
  host.send("event", { event: "turn_start", step: 1 });
  host.send("tool_call", { id: "c1", name: "tool", args: { name: "given up" } });
  host.send("tool_cancel", { id: "c1" });
  host.send("tool_call", { id: "c2", name: "tool", args: { name: "kept" } });
  setTimeout(release, 10);
  assert.equal(textOf(await host.frame()), "kept");
  host.send("event", { event: "turn_start", step: 2 });
  host.send("shutdown");
  await host.ended;
  assert.deepEqual(ran, ["kept"]);
});
