/** Commands, tools, events, interceptors and what an extension shows, as frames. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Block, Extension, ExtensionError, Image, Insert, Panel, Prompt, ToolResult } from "../src/extension.mjs";
import { FakeHost, logOf, textOf } from "../support/host.mjs";

const PANEL = { id: "todos", title: "Todos", lines: ["one", "two"], footer: "esc close" };

/** An extension that was greeted. */
async function greeted(ext) {
  const host = new FakeHost(ext);
  host.frames = await host.greet();
  return host;
}

// --- commands ----------------------------------------------------------------------------------------------------------

test("commands answer with a text, a prompt, an insertion, a panel or nothing", async () => {
  const answers = [
    ["hi", { action: "display", display: "hi" }],
    [new Prompt("go"), { action: "prompt", prompt: "go" }],
    [new Insert("text"), { action: "insert", insert: "text" }],
    [undefined, { action: "noop" }],
    [new Panel(PANEL), { action: "open_panel", open_panel: PANEL }],
  ];
  for (const [answer, fields] of answers) {
    const ext = new Extension("x");
    ext.command("c", "", () => answer);
    ext.command("async", "", async () => answer);
    const host = await greeted(ext);
    assert.deepEqual(await host.command("c"), { type: "command_response", id: "c1", ...fields });
    assert.deepEqual(await host.command("async"), { type: "command_response", id: "c1", ...fields });
    await host.finish();
  }
});

test("a throwing command becomes an error, and so does an unknown one", async () => {
  const ext = new Extension("x");
  const fail = (error) => () => {
    throw error;
  };
  ext.command("polite", "", fail(new ExtensionError("no network")));
  ext.command("rude", "", fail(new TypeError("oops")));
  ext.command("mute", "", fail(new ExtensionError()));
  ext.command("late", "", () => Promise.reject(new ExtensionError("later")));
  ext.command("odd", "", () => 7);
  const log = await logOf(async () => {
    const host = await greeted(ext);
    const error = async (name) => (await host.command(name)).error;
    assert.equal(await error("polite"), "no network");
    assert.equal(await error("rude"), "TypeError: oops");
    assert.equal(await error("mute"), "command mute failed");
    assert.equal(await error("late"), "later");
    assert.match(await error("odd"), /a command returns a string, Prompt/);
    assert.equal(await error("none"), "unknown command none");
    await host.finish();
  });
  assert.match(log, /command rude failed: TypeError: oops\n +at /);
  assert.doesNotMatch(log, /no network/);
});

// --- tools -------------------------------------------------------------------------------------------------------------

test("tools return what is natural", async () => {
  const results = [
    ["hi", [{ type: "text", text: "hi" }]],
    [undefined, []],
    [new Image(Buffer.from("GIF"), "image/gif"), [{ type: "image", mime_type: "image/gif", data: "R0lG" }]],
    [
      ["see", new Image(new Uint8Array([137]))],
      [
        { type: "text", text: "see" },
        { type: "image", mime_type: "image/png", data: "iQ==" },
      ],
    ],
    [{ temp: 16 }, [{ type: "text", text: '{"temp":16}' }]],
    [[], [{ type: "text", text: "[]" }]],
    [0, [{ type: "text", text: "0" }]],
  ];
  for (const [result, content] of results) {
    const ext = new Extension("x");
    ext.tool({ name: "t" }, async () => result);
    const host = await greeted(ext);
    assert.deepEqual(await host.call("t"), { type: "tool_result", id: "c1", content });
    await host.finish();
  }
});

test("K5: details go as they are, null too; without them nothing is said", async () => {
  const ext = new Extension("x");
  ext.tool({ name: "keep" }, (args) => new ToolResult("ok", args));
  const host = await greeted(ext);
  host.send("tool_call", { id: "c1", name: "keep", args: { details: { state: 1 } } });
  assert.ok((await host.line()).endsWith('"details":{"state":1}}\n'));
  assert.equal((await host.call("keep", { details: null })).details, null);
  assert.ok(!("details" in (await host.call("keep", {}))));
  await host.finish();
});

test("details that are no JSON are left out, the result is not", async () => {
  const circular = [];
  circular.push(circular);
  for (const details of [circular, 10n, () => {}, Symbol("x")]) {
    const log = await logOf(async () => {
      const ext = new Extension("x");
      ext.tool({ name: "t" }, () => new ToolResult("fine", { details }));
      const host = await greeted(ext);
      assert.deepEqual(await host.call("t"), {
        type: "tool_result",
        id: "c1",
        content: [{ type: "text", text: "fine" }],
      });
      await host.finish();
    });
    assert.match(log, /not saved/);
  }
});

test("K10: deferred and interactive tools are announced, and results activate tools", async () => {
  const ext = new Extension("x");
  ext.tool({ name: "hidden", description: "later", deferred: true }, () => "boo");
  ext.tool({ name: "person", interactive: true }, () => "yes");
  ext.tool({ name: "loader" }, () => new ToolResult("enabled", { activate: ["hidden"] }));
  const host = await greeted(ext);
  const schema = { type: "object", properties: {} };
  assert.deepEqual(host.frames.slice(1, 3), [
    { type: "register_tool", name: "hidden", description: "later", schema, deferred: true },
    { type: "register_tool", name: "person", description: "", schema, interactive: true },
  ]);
  assert.deepEqual((await host.call("loader")).activate_tools, ["hidden"]);
  await host.finish();
});

test("a throwing tool becomes an error result, and so does an unknown one", async () => {
  const ext = new Extension("x");
  ext.tool({ name: "fail" }, ({ how }) => {
    throw how === "polite" ? new ExtensionError("the city is unknown") : new RangeError("oops");
  });
  ext.tool({ name: "nothing" }, () => () => {});
  ext.tool({ name: "returned" }, () => new ToolResult("no", { isError: true }));
  ext.tool({ name: "activates" }, () => new ToolResult("ok", { activate: 7 }));
  await logOf(async () => {
    const host = await greeted(ext);
    const frames = [
      await host.call("fail", { how: "polite" }),
      await host.call("fail", {}),
      await host.call("nothing"),
      await host.call("returned"),
      await host.call("nobody"),
      await host.call("activates"),
    ];
    assert.match(textOf(frames.pop()), /^TypeError: .*not iterable/);
    assert.deepEqual(frames.map(textOf), [
      "the city is unknown",
      "RangeError: oops",
      "TypeError: a tool returned a function, which is no JSON",
      "no",
      "unknown tool nobody",
    ]);
    assert.ok(frames.every((frame) => frame.is_error));
    await host.finish();
  });
});

test("what is too long for a line becomes an error that says so", async () => {
  const ext = new Extension("x");
  ext.tool({ name: "big" }, () => "x".repeat(4_200_000));
  ext.command("long", "", () => ext.notify("x".repeat(4_194_304)));
  ext.tool({ name: "fails" }, () => {
    throw new ExtensionError("x".repeat(5_000_000));
  });
  const host = await greeted(ext);
  const result = await host.call("big");
  assert.deepEqual(
    [result.is_error, textOf(result)],
    [true, "tool_result has 4200071 bytes; the host takes at most 4194304"],
  );
  assert.match((await host.command("long")).error, /^notify has \d+ bytes; the host takes at most 4194304$/);
  assert.equal(textOf(await host.call("fails")).length, 32_768 + 4);
  await host.finish();
});

test("handlers run side by side", async () => {
  const ext = new Extension("x");
  let open;
  const gate = new Promise((resolve) => {
    open = resolve;
  });
  ext.tool({ name: "waits" }, async () => {
    await gate;
    return "waited";
  });
  ext.command("opens", "", () => open());
  const host = await greeted(ext);
  host.send("tool_call", { id: "c1", name: "waits", args: {} });
  assert.equal((await host.command("opens", "", "c2")).id, "c2");
  assert.equal(textOf(await host.frame()), "waited");
  await host.finish();
});

// --- interceptors ------------------------------------------------------------------------------------------------------

test("interceptors allow, block and rewrite", async () => {
  const ext = new Extension("x");
  ext.interceptToolCall((tool, args) => {
    if (args.command?.includes("rm -rf")) return new Block("dangerous");
    return tool === "bash" ? { ...args, command: "echo safe" } : undefined;
  });
  ext.interceptAssistantMessage(async (text) => (text === "drop" ? new Block() : text.replace("secret", "[redacted]")));
  const host = await greeted(ext);
  const answer = { type: "event_intercept_response", id: "c1" };
  const bash = { tool_name: "bash", tool_args: { command: "ls", timeout: 30 } };
  assert.deepEqual(await host.ask("tool_call", bash), {
    ...answer,
    modified_args: { command: "echo safe", timeout: 30 },
  });
  assert.deepEqual(await host.ask("tool_call", { tool_name: "read", tool_args: { path: "a" } }), answer);
  assert.deepEqual(await host.ask("tool_call", { tool_name: "bash", tool_args: { command: "rm -rf /" } }), {
    ...answer,
    block: true,
    reason: "dangerous",
  });
  assert.equal((await host.ask("assistant_message", { text: "my secret" })).replace_text, "my [redacted]");
  assert.deepEqual(await host.ask("assistant_message", { text: "drop" }), { ...answer, block: true, reason: "" });
  assert.deepEqual(await host.ask("turn_start", { step: 1 }), answer);
  assert.deepEqual(await host.ask("something_new"), answer);
  await host.finish();
});

test("K7: a text is hidden context for this model call", async () => {
  const ext = new Extension("x");
  ext.interceptTurnStart((step) => `this is step ${step}`);
  const host = await greeted(ext);
  assert.deepEqual(await host.ask("turn_start", { step: 3 }, "q7"), {
    type: "event_intercept_response",
    id: "q7",
    context: "this is step 3",
  });
  await host.finish();
});

test("a guard that throws, rejects or answers nonsense blocks", async () => {
  const circular = {};
  circular.self = circular;
  const guards = [
    () => {
      throw new Error("oops");
    },
    () => Promise.reject(new ExtensionError("no rules yet")),
    () => 7,
    () => "text",
    () => ["a"],
    () => circular,
    () => ({ n: 10n }),
  ];
  for (const guard of guards) {
    await logOf(async () => {
      const ext = new Extension("gate");
      ext.interceptToolCall(guard);
      const host = await greeted(ext);
      const answer = await host.ask("tool_call", { tool_name: "bash", tool_args: {} });
      assert.equal(answer.block, true);
      assert.match(answer.reason, /^guard gate failed: ./);
      await host.finish();
    });
  }
});

test("one interceptor an event", () => {
  const ext = new Extension("x");
  ext.interceptTurnStart(() => {});
  assert.throws(() => ext.interceptTurnStart(() => {}), /turn_start has an interceptor already/);
});

// --- events ------------------------------------------------------------------------------------------------------------

test("events come in order, slow handlers or not, and before what follows", async () => {
  const ext = new Extension("x");
  const seen = [];
  ext.on("turn_start", async ({ step }) => {
    if (step === 1) await new Promise((resolve) => setTimeout(resolve, 20));
    seen.push(step);
  });
  ext.tool({ name: "seen" }, () => seen.join());
  const host = await greeted(ext);
  const steps = Array.from({ length: 50 }, (_, i) => i + 1);
  for (const step of steps) host.send("event", { event: "turn_start", step });
  assert.equal(textOf(await host.call("seen")), steps.join());
  await host.finish();
});

test("K6, K9: events carry their fields", async () => {
  const ext = new Extension("x");
  const seen = [];
  ext.on(["session_opened", "tool_confirmation_requested"], (event) => seen.push(event));
  const host = await greeted(ext);
  const session = { id: "b2", parent_id: "b1", path: "/s.jsonl", cwd: "/p", fork_point: 4 };
  host.send("event", { event: "session_opened", session, state: { version: 1 } });
  host.send("event", {
    event: "tool_confirmation_requested",
    tool_id: "t",
    tool_name: "read",
    tool_preview: "a.txt",
  });
  await host.finish();
  assert.deepEqual(seen, [
    { type: "event", event: "session_opened", session, state: { version: 1 } },
    {
      type: "event",
      event: "tool_confirmation_requested",
      tool_id: "t",
      tool_name: "read",
      tool_preview: "a.txt",
    },
  ]);
});

test("a throwing event handler costs itself only", async () => {
  const ext = new Extension("x");
  const seen = [];
  ext.on("turn_end", () => {
    throw new Error("oops");
  });
  ext.on("turn_end", async () => {
    throw new Error("late");
  });
  ext.on("turn_end", ({ stop }) => seen.push(stop));
  const log = await logOf(async () => {
    const host = await greeted(ext);
    host.send("event", { event: "turn_end", stop: "tool_use" });
    host.send("event", { event: "turn_end", stop: "end_turn" });
    await host.finish();
  });
  assert.deepEqual(seen, ["tool_use", "end_turn"]);
  assert.equal(log.match(/the handler of turn_end failed/g).length, 4);
});

test("an unknown event is refused at once", () => {
  assert.throws(() => new Extension("x").on("turn_strat", () => {}), /no event turn_strat; there is: session_start/);
});

// --- what is shown -----------------------------------------------------------------------------------------------------

test("K3, K4, K8: panels, status items, widgets, notes, alerts and prompts have all their fields", async () => {
  const ext = new Extension("x");
  ext.command("act", "", () => {
    ext.openPanel(PANEL);
    ext.renderPanel({ id: "todos", lines: ["three"] });
    ext.closePanel("todos");
    ext.status("progress", "2/4", "success");
    ext.status("progress", "");
    ext.widget("w", ["a", "b"], "Progress");
    ext.clearWidget("w");
    ext.alert("question_ready");
    ext.notify("saved", "success");
    ext.clearNotes();
    ext.submit("go on");
  });
  const host = await greeted(ext);
  const frames = [await host.command("act")];
  while (frames.at(-1).type !== "command_response") frames.push(await host.frame());
  assert.deepEqual(frames.slice(0, -1), [
    { type: "open_panel", panel: PANEL },
    { type: "panel_render", panel_id: "todos", title: "", lines: ["three"], footer: "" },
    { type: "panel_close", panel_id: "todos" },
    { type: "status", key: "progress", level: "success", text: "2/4" },
    { type: "status", key: "progress", level: "info", text: "" },
    { type: "widget", id: "w", position: "above_input", title: "Progress", lines: ["a", "b"] },
    { type: "widget_clear", id: "w" },
    { type: "alert", kind: "bell", reason: "question_ready" },
    { type: "notify", level: "success", message: "saved" },
    { type: "clear_notes" },
    { type: "submit", text: "go on" },
  ]);
  await host.finish();
});

for (const [key, isError] of [
  ["y", undefined],
  ["n", true],
]) {
  test(`K11: a tool waits for the key ${key}`, async () => {
    const ext = new Extension("x");
    let press;
    const pressed = new Promise((resolve) => {
      press = resolve;
    });
    ext.onKey("ask", press);
    ext.tool({ name: "approve", interactive: true }, async ({ what }) => {
      ext.openPanel({ id: "ask", title: "Approve?", lines: [what], footer: "y/n" });
      const { text } = await pressed;
      return new ToolResult(text, { isError: text !== "y" });
    });
    const host = await greeted(ext);
    const opened = await host.call("approve", { what: "deploy" });
    assert.deepEqual(opened.panel, { id: "ask", title: "Approve?", lines: ["deploy"], footer: "y/n" });
    host.send("panel_key", { panel_id: "other", key: "enter" });
    host.send("panel_key", { panel_id: "ask", key: "rune", text: key });
    const result = await host.frame();
    assert.deepEqual([textOf(result), result.is_error], [key, isError]);
    await host.finish();
  });
}

test("the user closes a panel", async () => {
  const ext = new Extension("x");
  const closed = [];
  ext.onClose("p", (id) => closed.push(id));
  const host = await greeted(ext);
  host.send("panel_close", { panel_id: "other" });
  host.send("panel_close", { panel_id: "p" });
  await host.finish();
  assert.deepEqual(closed, ["p"]);
});

test("frames of any shape are survived", async () => {
  const ext = new Extension("x");
  ext.state([]);
  ext.tool({ name: "t" }, () => "");
  ext.command("c", "", () => "alive");
  ext.on(["turn_start", "session_opened"], () => {});
  ext.interceptToolCall(() => {});
  ext.onKey("p", () => {});
  await logOf(async () => {
    const host = await greeted(ext);
    const odd = [undefined, null, 0, "", [], {}, "constructor", "__proto__", "t", "c"];
    const types = ["event", "event_intercept", "command_invoked", "tool_call", "tool_cancel", "panel_key", "constructor"];
    for (const type of types) {
      for (const value of odd) {
        const names = ["id", "name", "args", "event", "session", "state", "panel_id", "key", "tool_args"];
        for (const name of names) host.send(type, { [name]: value });
        host.send(type, Object.fromEntries(names.map((name) => [name, value])));
      }
    }
    host.send("command_invoked", { id: "the last", name: "c", args: "" });
    let frame;
    do frame = await host.frame();
    while (frame.id !== "the last");
    assert.equal(frame.display, "alive");
    await host.finish();
  });
});
