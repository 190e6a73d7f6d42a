// What the types allow and what they refuse; `tsc` reads this file, nothing runs it.

import { Block, Extension, Image, Panel, Prompt, ToolResult, type Event, type Session } from "@zutd/extension";
import type { Event as DaemonEvent, FromDaemon, SuccessResponse, TypedCommand } from "@zutd/extension/client";
import type { FromExtension, SessionInfo, ToExtension } from "@zutd/extension/frames";
import type { Row } from "@zutd/extension/session";

const ext = new Extension("x", "1.0.0", { capabilities: ["alerts"] });

ext.command("a", "shows a text", (args) => args.toUpperCase());
ext.command("b", "does it itself", async () => {});
ext.command("c", "asks the model", async (args) => new Prompt(args));
ext.command("d", "opens a panel", () => new Panel({ id: "p", lines: ["one"] }));
// @ts-expect-error a command returns no number
ext.command("e", "wrong", () => 7);

ext.tool({ name: "t", schema: { type: "object" } }, (args, { signal }) => `${args.city} ${signal.aborted}`);
ext.tool<{ city: string }>({ name: "t" }, async ({ city }) => new ToolResult(city, { details: { city }, activate: ["u"] }));
ext.tool({ name: "t" }, () => ["see", new Image(new Uint8Array(), "image/gif")]);
ext.tool({ name: "t" }, () => {});
// @ts-expect-error a schema is of the type object
ext.tool({ name: "t", schema: { type: "string" } }, () => "");

ext.on("turn_end", (event) => event.stop === "aborted" && event.error);
ext.on(["session_opened", "session_switched"], (event) => [event.event, event.session?.id, event.state]);
// @ts-expect-error there is no such event
ext.on("turn_strat", () => {});
// @ts-expect-error the event has no such field
ext.on("turn_start", (event) => event.text);
const told = (event: Event): string => (event.event === "assistant_message" ? event.text : event.event);

ext.interceptToolCall((tool, args) => (tool === "bash" ? { ...args, command: "echo" } : new Block("no")));
ext.interceptTurnStart(async (step) => `step ${step}`);
ext.interceptAssistantMessage((text) => (text ? undefined : new Block()));
// @ts-expect-error an interceptor of texts returns no object
ext.interceptAssistantMessage(() => ({ text: "x" }));

const state = ext.state({ items: ["one"] });
state.value.items.push("two");
// @ts-expect-error the state has no such part
state.value.things;

ext.notify("hi", "warn");
// @ts-expect-error there is no such level
ext.notify("hi", "loud");
ext.onKey("p", ({ key, text }) => key === "rune" && text === "y");

const command: TypedCommand = { type: "prompt", message: "hi", when: "steer", id: 1 };
const tree: TypedCommand = { type: "get_tree", session_id: "4f1c", id: "1" };
// @ts-expect-error there is no such command
const wrong: TypedCommand = { type: "fly" };
type PromptData = Extract<SuccessResponse, { command: "prompt" }>["data"];
const reply: PromptData = { started: true, prompt_id: "p1" };

function show(line: FromDaemon): string {
  if ("jsonrpc" in line) return "the other dialect";
  if (line.type === "response") return line.success ? line.command : `${line.code}: ${line.error}`;
  return line.type === "text_delta" ? line.delta : String(line.seq);
}
const delta: DaemonEvent = { type: "text_delta", delta: "Hi", seq: 4, turn_id: "t1" };

function answer(frame: ToExtension): FromExtension | undefined {
  return frame.type === "tool_call" ? { type: "tool_result", id: frame.id, content: [{ type: "text", text: "" }] } : undefined;
}
const isMessage = (row: Row) => row.type === "message";

const same = (session: Session): SessionInfo => session;
const andBack = (session: SessionInfo): Session => session;

export { andBack, answer, command, delta, isMessage, reply, same, show, told, tree, wrong };
