/** Extensions as programs: a copy that works alone, stray prints, exit codes; and the types name what is there. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import * as sdk from "../src/extension.mjs";
import { ACK } from "../support/host.mjs";

const SOURCE = fileURLToPath(new URL("../src/extension.mjs", import.meta.url));
let directory;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "zutd-sdk-"));
  await copyFile(SOURCE, join(directory, "zutd-extension.mjs"));
});
after(() => rm(directory, { recursive: true }));

/** Run an extension with these lines as its stdin, which is kept open until `until` has been seen on stdout. */
async function run(body, frames, until = "shutdown_ack") {
  const path = join(directory, "x.mjs");
  const head = 'import { Extension } from "./zutd-extension.mjs";\nconst ext = new Extension("x", "1.0.0");\n';
  await writeFile(path, `${head}${body}\n`);
  const child = spawn(process.execPath, [path], { cwd: directory });
  const written = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"]) {
    child[name].on("data", (chunk) => {
      written[name] += chunk;
      if (written.stdout.includes(until)) child.stdin.end();
    });
  }
  child.stdin.on("error", () => {});
  for (const frame of frames) child.stdin.write(`${JSON.stringify(frame)}\n`);
  const code = await new Promise((resolve) => child.on("close", resolve));
  const lines = written.stdout.split("\n").slice(0, -1);
  return { code, stderr: written.stderr, frames: lines.map((line) => JSON.parse(line)) };
}

test("a copy works alone; console goes to the log; shutdown and the author's last lines", async () => {
  const body = `
    ext.tool({ name: "t" }, ({ text }) => { console.log("stray"); process.stdout.write("print\\n"); return text; });
    setInterval(() => {}, 1000); // what an author leaves open does not keep the extension alive
    await ext.run();
    console.log("tidied up");`;
  const call = { type: "tool_call", id: "c1", name: "t", args: { text: "Köln" } };
  const began = performance.now();
  const done = await run(body, [ACK, call, { type: "shutdown" }]);
  assert.deepEqual(
    done.frames.map((frame) => frame.type),
    ["hello", "register_tool", "ready", "tool_result", "shutdown_ack"],
  );
  assert.equal(done.frames[3].content[0].text, "Köln");
  assert.deepEqual([done.code, done.stderr], [0, "stray\nprint\ntidied up\n"]);
  assert.ok(performance.now() - began < 1000 + sdk.GRACE_MS);
});

test("EOF is a good end", async () => {
  const done = await run("await ext.run();", [ACK], "ready");
  assert.deepEqual([done.code, done.stderr, done.frames.length], [0, "", 2]);
});

test("K1: a host of another version ends the program with words and exit code 1", async () => {
  const done = await run("await ext.run();", [{ ...ACK, protocol_version: 3 }], "never");
  assert.deepEqual([done.code, done.frames.length], [1, 1]);
  assert.equal(done.stderr, "x: unsupported host protocol version 3 (this extension speaks 2)\n");
});

test("the declarations name everything that is there, and nothing else", async () => {
  const text = await readFile(SOURCE.replace(".mjs", ".d.mts"), "utf8");
  const exported = [...text.matchAll(/^export (?:class|const) (\w+)/gm)].map((found) => found[1]);
  assert.deepEqual(exported.sort(), Object.keys(sdk).sort());
  for (const name of ["Extension", "State"]) {
    const body = text.match(new RegExp(`^export class ${name}\\b.*?^}`, "ms"))[0];
    const declared = [...body.matchAll(/^ {2}(\w+)(?:<[^(]*>)?\(/gm)].map((found) => found[1]);
    const real = Object.getOwnPropertyNames(sdk[name].prototype);
    assert.deepEqual(declared.sort(), real.sort());
  }
});
