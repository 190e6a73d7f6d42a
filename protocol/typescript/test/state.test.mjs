/** State that belongs to the branch: what comes back with session events, and what goes out with results. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Extension, ToolResult } from "../src/extension.mjs";
import { FakeHost, logOf, textOf } from "../support/host.mjs";

async function notes() {
  const ext = new Extension("notes");
  const state = ext.state([]);
  ext.tool({ name: "add" }, ({ text }) => {
    state.value.push(text);
  });
  ext.tool({ name: "show" }, () => state.value.join());
  ext.tool({ name: "big" }, ({ size }) => {
    state.value.push("big");
    return "x".repeat(size);
  });
  ext.tool({ name: "own" }, ({ details }) => new ToolResult("ok", { details }));
  ext.tool({ name: "spoil" }, () => {
    state.value = 10n;
    return "fine";
  });
  ext.command("add", "", (args) => {
    state.value.push(args);
  });
  const seen = [];
  ext.on("session_opened", () => seen.push([...state.value]));
  const host = new FakeHost(ext);
  host.frames = await host.greet();
  host.told = (event, branch, more = {}) =>
    host.send("event", { event, session: { id: branch, path: "", cwd: "", fork_point: 0 }, ...more });
  return { host, seen };
}

test("the session events are subscribed to, and the author's handlers see the new value", async () => {
  const { host, seen } = await notes();
  const subscribe = host.frames.find((frame) => frame.type === "subscribe");
  assert.deepEqual(new Set(subscribe.events).size, 5);
  host.told("session_opened", "b1", { state: ["old"] });
  assert.equal(textOf(await host.call("show")), "old");
  assert.deepEqual(seen, [["old"]]);
  await host.finish();
});

test("results carry what has changed, and only then", async () => {
  const { host } = await notes();
  assert.ok(!("details" in (await host.call("show"))));
  assert.deepEqual((await host.call("add", { text: "a" })).details, ["a"]);
  assert.ok(!("details" in (await host.call("show"))));
  await host.command("add", "by the user");
  assert.deepEqual((await host.call("show")).details, ["a", "by the user"]);
  await host.finish();
});

test("branches have their own state, and the first value is never touched", async () => {
  const { host } = await notes();
  await host.call("add", { text: "a" });
  host.told("session_switched", "b2", { state: ["other"] });
  assert.deepEqual((await host.call("add", { text: "b" })).details, ["other", "b"]);
  host.told("session_switched", "b3");
  assert.equal(textOf(await host.call("show")), "");
  assert.deepEqual((await host.call("add", { text: "c" })).details, ["c"]);
  await host.finish();
});

test("a compaction loses nothing that was not saved yet", async () => {
  const { host } = await notes();
  host.told("session_opened", "b1", { state: ["saved"] });
  await host.command("add", "not saved");
  host.told("session_compacted", "b1", { state: ["saved"] });
  assert.deepEqual((await host.call("show")).details, ["saved", "not saved"]);
  await host.finish();
});

test("a result that could not be sent saved nothing", async () => {
  const { host } = await notes();
  const failed = await host.call("big", { size: 5_000_000 });
  assert.deepEqual([failed.is_error, "details" in failed], [true, false]);
  assert.deepEqual((await host.call("show")).details, ["big"]);
  await host.finish();
});

test("the handler's own details win, and a value that is no JSON costs the state only", async () => {
  const { host } = await notes();
  await host.command("add", "x");
  assert.deepEqual((await host.call("own", { details: { mine: true } })).details, { mine: true });
  assert.equal((await host.call("own", { details: null })).details, null);
  const log = await logOf(async () => {
    const frame = await host.call("spoil");
    assert.deepEqual([textOf(frame), "details" in frame], ["fine", false]);
  });
  assert.match(log, /not saved/);
  await host.finish();
});

test("one state an extension", () => {
  const ext = new Extension("x");
  ext.state(1);
  assert.throws(() => ext.state(2), /has a state already/);
});
