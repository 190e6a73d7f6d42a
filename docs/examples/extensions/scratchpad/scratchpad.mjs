#!/usr/bin/env node
// @ts-check
/**
 * Notes that the user (/note, /pad) and the model (the tool scratchpad) share, with the SDK for Node.
 *
 * Written as JavaScript with types in comments, so that Node runs it as it is and an editor still checks it. The notes
 * are state of the conversation: each branch has its own.
 */

import { Extension, ExtensionError, Insert, Panel } from "./zutd-extension.mjs";

const ext = new Extension("scratchpad", "1.0.0");

/** @type {import("./zutd-extension.mjs").State<string[]>} */
const notes = ext.state([]);

const numbered = () => notes.value.map((note, i) => `${i + 1}. ${note}`);

function show() {
  if (notes.value.length) ext.widget("pad", numbered().slice(-3), `Scratchpad (${notes.value.length})`);
  else ext.clearWidget("pad");
}

// --- for the user

ext.command("note", "write something down: /note the port is 8080", (args) => {
  if (!args) throw new ExtensionError("what shall be noted? /note the port is 8080");
  notes.value.push(args);
  show();
  return `noted as ${notes.value.length}`;
});

ext.command("pad", "show all notes, or put one into the editor: /pad 2", (args) => {
  if (!args) return new Panel({ id: "pad", title: "Scratchpad", lines: numbered(), footer: "esc close" });
  const note = notes.value[Number(args) - 1];
  if (note === undefined) throw new ExtensionError(`there is no note ${args}; there are ${notes.value.length}`);
  return new Insert(note);
});

// --- for the model

/** @type {Record<string, (text: string) => void>} */
const actions = {
  read: () => {},
  append: (text) => notes.value.push(text),
  replace: (text) => (notes.value = text.split("\n").filter(Boolean)),
};

ext.tool(
  {
    name: "scratchpad",
    description: "Notes that you and the user share. The answer is always all of them.",
    schema: {
      type: "object",
      properties: {
        action: { type: "string", enum: Object.keys(actions) },
        text: { type: "string", description: "the note to append, or all notes, one a line, to replace them" },
      },
      required: ["action"],
    },
  },
  (args) => {
    const { action, text = "" } = /** @type {{action: string, text?: string}} */ (args);
    if (!Object.hasOwn(actions, action)) throw new ExtensionError(`action must be one of ${Object.keys(actions)}`);
    if (typeof text !== "string" || (action === "append" && !text.trim())) throw new ExtensionError("text is missing");
    actions[action](text);
    show();
    return numbered().join("\n") || "(empty)";
  },
);

ext.on(["session_opened", "session_switched", "session_forked"], show);

await ext.run();
