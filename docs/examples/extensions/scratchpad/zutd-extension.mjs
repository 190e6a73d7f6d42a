/**
 * Extensions for zutd in JavaScript: one file, no dependencies, Node 20 or newer, so a copy of it works alone.
 *
 *     import { Extension } from "@zutd/extension";
 *
 *     const ext = new Extension("weather", "1.0.0");
 *     ext.tool(
 *       { name: "weather", description: "Current weather for a city.", schema },
 *       ({ city }) => `${city}: sunny`,
 *     );
 *     await ext.run();
 *
 * Strategy: frames are taken as they come. `tool_cancel`, `shutdown` and the end of stdin are dealt with at once; all
 * others stand in one queue. The handlers of events and panel keys are awaited there, so they see what happened in the
 * order in which it happened; commands, tool calls and questions are only begun there, so they run side by side, after
 * the events that came before them. The types are in extension.d.mts.
 */

export const PROTOCOL_VERSION = 2;

/** Bytes of the longest line that the host takes, its LF included. */
export const LINE_LIMIT = 4 * 1024 * 1024;

/** Characters of an error that are sent: an error must always fit into a line. */
const ERROR_LIMIT = 32_768;

/** Milliseconds that running handlers get to tidy up when the extension ends; the host kills it after 2000. */
export const GRACE_MS = 1000;

const EVENTS = [
  "session_start",
  "session_opened",
  "session_switched",
  "session_forked",
  "session_compacted",
  "turn_start",
  "tool_call",
  "tool_confirmation_requested",
  "assistant_message",
  "turn_end",
];
const SESSION_EVENTS = EVENTS.filter((name) => name.startsWith("session_"));

// --- what handlers give back -------------------------------------------------------------------------------------------

/** Throw it in a handler: the command or tool fails with exactly this text. */
export class ExtensionError extends Error {}

/** The program at the other end is no host that this file can talk to. */
export class HostError extends Error {}

/** A command's answer: this text goes to the model as if the user had typed it. */
export class Prompt {
  constructor(text) {
    this.text = text;
  }
}

/** A command's answer: this text is put into the user's editor. */
export class Insert {
  constructor(text) {
    this.text = text;
  }
}

/** Lines of text that the user can send keys to; as a command's answer it opens. */
export class Panel {
  constructor({ id, title = "", lines = [], footer = "" }) {
    Object.assign(this, { id, title, lines, footer });
  }
}

/** An interceptor's no. The model reads the reason of a refused tool call, the user that of anything else. */
export class Block {
  constructor(reason = "") {
    this.reason = reason;
  }
}

/** A picture in a tool's result: the bytes of a PNG, JPEG, GIF or WebP file. */
export class Image {
  constructor(data, mimeType = "image/png") {
    Object.assign(this, { data, mimeType });
  }
}

/**
 * A tool's result with more than its content. `details` is any JSON value and replaces the extension's state on this
 * branch (null clears it). `activate` names deferred tools that the model may use from now on.
 */
export class ToolResult {
  constructor(content, { isError = false, details = undefined, activate = [] } = {}) {
    Object.assign(this, { content, isError, details, activate });
  }
}

/** A value that belongs to the active branch of the conversation; see `Extension.state`. */
export class State {
  #initial;
  #saved;
  #branch = "";

  constructor(initial) {
    this.#initial = JSON.stringify(initial);
    this.#saved = this.#initial;
    this.value = JSON.parse(this.#initial);
  }

  /** Take what a session event hands back. */
  restore(event) {
    const branch = event.session?.id ?? "";
    // After a compaction the same branch goes on, and what was not saved yet must not be lost.
    if (event.event === "session_compacted" && branch === this.#branch) return;
    this.#branch = branch;
    this.#saved = JSON.stringify(event.state ?? null);
    if (this.#saved === "null") this.#saved = this.#initial;
    this.value = JSON.parse(this.#saved);
  }

  /** The value if it has changed since the host got it, else undefined. Throws when it cannot be JSON. */
  toSave() {
    const text = JSON.stringify(this.value);
    if (text === this.#saved) return undefined;
    this.#saved = text;
    return JSON.parse(text);
  }

  /** The host did not get it after all. */
  forgetSaved() {
    this.#saved = "";
  }
}

// --- JSON and lines ----------------------------------------------------------------------------------------------------

/** Lines as they come, split at LF only; the last one may lack it. */
async function* readLines(input) {
  let pieces = [];
  for await (const chunk of input) {
    let begin = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, begin)) {
      pieces.push(chunk.subarray(begin, end));
      yield Buffer.concat(pieces).toString();
      pieces = [];
      begin = end + 1;
    }
    pieces.push(chunk.subarray(begin));
  }
  const last = Buffer.concat(pieces).toString();
  if (last) yield last;
}

/** Half an emoji becomes U+FFFD, everywhere in a JSON value. */
function wellFormed(value) {
  if (typeof value === "string") return value.toWellFormed();
  if (Array.isArray(value)) return value.map(wellFormed);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name.toWellFormed(), wellFormed(one)]));
}

/** A line's object. Throws. */
function parse(line) {
  const frame = JSON.parse(line);
  if (frame === null || typeof frame !== "object" || Array.isArray(frame)) throw new Error("it is no object");
  return /\\u[dD]/.test(line) ? wellFormed(frame) : frame;
}

/** A line for the extension's log. */
function log(text) {
  process.stderr.write(`[sdk] ${text}\n`);
}

/** A handler's error for whoever waits for it, never empty; one that was not thrown on purpose is logged. */
function explain(what, error) {
  const meant = error instanceof ExtensionError;
  if (!meant) log(`${what} failed: ${error?.stack ?? error}`);
  const text = (meant ? error.message : String(error)) || `${what} failed`;
  return text.length > ERROR_LIMIT ? `${text.slice(0, ERROR_LIMIT)} ...` : text;
}

/** What a tool returned, as blocks: text, images, a list of both, or anything else as JSON. */
function toBlocks(content) {
  if (content === undefined || content === null) return [];
  if (typeof content === "string") return [{ type: "text", text: content }];
  if (content instanceof Image) {
    return [{ type: "image", mime_type: content.mimeType, data: Buffer.from(content.data).toString("base64") }];
  }
  const isBlock = (one) => typeof one === "string" || one instanceof Image;
  if (Array.isArray(content) && content.length > 0 && content.every(isBlock)) return content.flatMap(toBlocks);
  const text = JSON.stringify(content);
  if (text === undefined) throw new TypeError(`a tool returned a ${typeof content}, which is no JSON`);
  return [{ type: "text", text }];
}

/** A command's answer as the fields of a frame. Throws. */
function commandFields(answer) {
  if (answer === undefined || answer === null) return { action: "noop" };
  if (typeof answer === "string") return { action: "display", display: answer };
  if (answer instanceof Prompt) return { action: "prompt", prompt: answer.text };
  if (answer instanceof Insert) return { action: "insert", insert: answer.text };
  if (answer instanceof Panel) return { action: "open_panel", open_panel: answer };
  throw new TypeError("a command returns a string, Prompt, Insert, Panel or nothing");
}

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const isString = (value) => typeof value === "string";

/** For each interceptable event: what its handler is asked, and what it may answer besides a Block. */
const QUESTIONS = {
  tool_call: { ask: (frame) => [frame.tool_name ?? "", frame.tool_args ?? {}], field: "modified_args", fits: isObject },
  turn_start: { ask: (frame) => [frame.step ?? 0], field: "context", fits: isString },
  assistant_message: { ask: (frame) => [frame.text ?? ""], field: "replace_text", fits: isString },
};

/** An interceptor's answer as the fields of a frame. Throws. */
function verdictFields(event, answer) {
  if (answer === undefined || answer === null) return {};
  if (answer instanceof Block) return { block: true, reason: answer.reason };
  const { field, fits } = QUESTIONS[event];
  if (!fits(answer)) throw new TypeError(`the interceptor of ${event} returned what is no ${field}`);
  return { [field]: answer };
}

// --- one conversation with the host ------------------------------------------------------------------------------------

/** What an extension has declared: its handlers by name, and the frames that announce them, in order. */
class Declared {
  registrations = [];
  commands = new Map();
  tools = new Map();
  observers = new Map();
  interceptors = new Map();
  keys = new Map();
  closed = new Map();
  hello = [];
  state = undefined;

  /** The announcement: registrations, and one subscription if there is anything to subscribe to. */
  frames() {
    const events = [...this.observers.keys()];
    const intercept = [...this.interceptors.keys()];
    const subscribe = events.length || intercept.length ? [{ type: "subscribe", events, intercept }] : [];
    return [...this.registrations, ...subscribe];
  }

  /** What `hello` says of it. `tool_cancel` only when a tool can do something about it. */
  capabilities() {
    const parts = {
      commands: this.commands.size,
      tools: this.tools.size,
      events: this.observers.size || this.interceptors.size,
      session_state: this.state,
      panels: this.keys.size,
      tool_cancel: [...this.tools.values()].some((handler) => handler.length >= 2),
    };
    return Object.keys(parts).filter((name) => parts[name]);
  }
}

/** From the handshake to the goodbye. */
class Conversation {
  announced = false;
  #name;
  #declared;
  #write;
  #open = true;
  #ending = false;
  #queue = Promise.resolve();
  #calls = new Map();
  #workers = new Set();

  constructor(name, declared, write) {
    this.#name = name;
    this.#declared = declared;
    this.#write = write;
  }

  /** Write a frame as one line. Throws when it is no JSON, or too long. */
  send(frame) {
    const line = `${JSON.stringify(frame)}\n`;
    const size = Buffer.byteLength(line);
    if (size > LINE_LIMIT) {
      throw new ExtensionError(`${frame.type} has ${size} bytes; the host takes at most ${LINE_LIMIT}`);
    }
    if (this.#open) this.#write(line);
  }

  /** Registrations, subscription, and `ready` whatever happens. */
  async announce() {
    this.announced = true;
    for (const frame of this.#declared.frames()) {
      await this.attempt(`${frame.type} ${frame.name ?? ""}`, () => this.send(frame));
    }
    this.send({ type: "ready" });
  }

  /** Take frames until `shutdown` or the end; nothing in here waits for a handler. */
  async serve(lines) {
    let goodbye;
    for await (const line of lines) {
      const frame = this.#parse(line);
      if (frame.type === "shutdown") {
        goodbye = { type: "shutdown_ack" };
        break;
      }
      this.#take(frame);
    }
    await this.#end(goodbye);
  }

  /** A line's frame; an empty one when it has none. */
  #parse(line) {
    try {
      return line.trim() ? parse(line) : {};
    } catch (error) {
      log(`ignored a line from the host: ${error.message} (${JSON.stringify(line.slice(0, 60))})`);
      return {};
    }
  }

  #take(frame) {
    if (frame.type === "tool_cancel") {
      const call = this.#calls.get(frame.id);
      this.#calls.delete(frame.id);
      call?.abort();
      return;
    }
    // From here on a call can be given up, also while it waits for its turn.
    if (frame.type === "tool_call") this.#calls.set(frame.id, new AbortController());
    this.#queue = this.#queue.then(() => this.attempt(`a frame ${frame.type}`, () => this.#dispatch(frame)));
  }

  #dispatch(frame) {
    const handle = Object.hasOwn(Conversation.#FRAMES, frame.type) ? Conversation.#FRAMES[frame.type] : undefined;
    if (handle !== undefined) return handle.call(this, frame);
    if (Object.keys(frame).length) log(`ignored a frame of the unknown type ${JSON.stringify(frame.type)}`);
  }

  static #FRAMES = {
    event: this.prototype.onEvent,
    event_intercept: this.prototype.onIntercept,
    command_invoked: this.prototype.onCommand,
    tool_call: this.prototype.onToolCall,
    panel_key: this.prototype.onKey,
    panel_close: this.prototype.onClose,
  };

  /** Say goodbye and nothing after it, tell the running handlers, and give them a moment. */
  async #end(goodbye) {
    if (goodbye) this.send(goodbye);
    this.#open = false;
    this.#ending = true;
    for (const call of this.#calls.values()) call.abort();
    let timer;
    const grace = new Promise((resolve) => {
      timer = setTimeout(resolve, GRACE_MS);
    });
    const ended = this.#queue.then(() => Promise.allSettled(this.#workers));
    await Promise.race([ended, grace]);
    clearTimeout(timer);
  }

  // --- running handlers

  /** Run something that has nobody to answer to. */
  async attempt(what, run) {
    try {
      await run();
    } catch (error) {
      log(`${what} failed: ${error?.stack ?? error}`);
    }
  }

  /** Run something beside everything else; nothing new begins when all is about to end. */
  #beside(answer) {
    if (this.#ending) return;
    const worker = answer().finally(() => this.#workers.delete(worker));
    this.#workers.add(worker);
  }

  async onEvent(frame) {
    if (SESSION_EVENTS.includes(frame.event)) this.#declared.state?.restore(frame);
    for (const handler of this.#declared.observers.get(frame.event) ?? []) {
      await this.attempt(`the handler of ${frame.event}`, () => handler(frame));
    }
  }

  async onKey(frame) {
    await this.#declared.keys.get(frame.panel_id)?.({ panelId: frame.panel_id, key: frame.key, text: frame.text ?? "" });
  }

  async onClose(frame) {
    await this.#declared.closed.get(frame.panel_id)?.(frame.panel_id);
  }

  onCommand(frame) {
    this.#beside(() => this.#answerCommand(frame));
  }

  onIntercept(frame) {
    this.#beside(() => this.#answerIntercept(frame));
  }

  onToolCall(frame) {
    const call = this.#calls.get(frame.id); // it may have been given up while it waited for the handler of an event
    if (call !== undefined) this.#beside(() => this.#answerTool(frame, call));
  }

  // --- answering

  async #answerCommand({ id, name, args = "" }) {
    const frame = { type: "command_response", id };
    try {
      const handler = this.#declared.commands.get(name);
      if (handler === undefined) throw new ExtensionError(`unknown command ${name}`);
      this.send({ ...frame, ...commandFields(await handler(args)) });
    } catch (error) {
      this.send({ ...frame, action: "noop", error: explain(`command ${name}`, error) });
    }
  }

  async #answerIntercept(question) {
    const frame = { type: "event_intercept_response", id: question.id };
    const event = question.event;
    try {
      const handler = this.#declared.interceptors.get(event);
      const answer = handler && (await handler(...QUESTIONS[event].ask(question)));
      this.send({ ...frame, ...verdictFields(event, answer) });
    } catch (error) {
      const reason = `guard ${this.#name} failed: ${explain(`the interceptor of ${event}`, error)}`;
      this.send({ ...frame, block: true, reason });
    }
  }

  async #answerTool({ id, name, args = {} }, call) {
    let result;
    let blocks;
    try {
      const handler = this.#declared.tools.get(name);
      if (handler === undefined) throw new ExtensionError(`unknown tool ${name}`);
      const answer = await handler(args, { id, signal: call.signal });
      result = answer instanceof ToolResult ? answer : new ToolResult(answer);
      blocks = toBlocks(result.content);
    } catch (error) {
      result = new ToolResult("", { isError: true });
      blocks = toBlocks(call.signal.aborted ? "cancelled" : explain(`tool ${name}`, error));
    }
    if (this.#calls.delete(id)) this.#sendResult(id, blocks, result);
  }

  #sendResult(id, content, { isError, details, activate }) {
    const frame = { type: "tool_result", id };
    try {
      const activated = [...activate];
      const flags = { is_error: isError || undefined, activate_tools: activated.length ? activated : undefined };
      this.send({ ...frame, content, ...flags, ...this.#detailsFields(details) });
    } catch (error) {
      this.#declared.state?.forgetSaved();
      this.send({ ...frame, content: toBlocks(explain("the result", error)), is_error: true });
    }
  }

  /** The state to keep: the handler's own word, else what has changed; nothing when it cannot be JSON. */
  #detailsFields(details) {
    try {
      const kept = details === undefined ? this.#declared.state?.toSave() : details;
      if (kept === undefined) return {};
      const text = JSON.stringify(kept);
      if (text === undefined) throw new TypeError(`it is a ${typeof kept}`);
      return { details: JSON.parse(text) };
    } catch (error) {
      log(`the state is no JSON and is not saved: ${error.message}`);
      return {};
    }
  }
}

/** The host's first frame, as what an extension wants to know of it. Throws HostError. */
function readAck(line) {
  let ack;
  try {
    ack = parse(line);
  } catch (error) {
    throw new HostError(`the host's first frame must be hello_ack: ${error.message}`);
  }
  if (ack.type !== "hello_ack") {
    throw new HostError(`the host's first frame must be hello_ack, not ${JSON.stringify(ack.type)}`);
  }
  if (ack.protocol_version !== PROTOCOL_VERSION) {
    const version = JSON.stringify(ack.protocol_version);
    throw new HostError(`unsupported host protocol version ${version} (this extension speaks ${PROTOCOL_VERSION})`);
  }
  const text = (name) => String(ack[name] ?? "");
  const texts = { version: text("zut_version"), provider: text("provider"), model: text("model"), cwd: text("cwd") };
  return { ...texts, dataDir: text("data_dir"), session: isObject(ack.session) ? ack.session : null };
}

// --- the extension -----------------------------------------------------------------------------------------------------

/**
 * An extension: declare what it does, then call `run`. Handlers may be async. They run side by side, only those of
 * events, keys and closed panels run one after the other. `name` must be the one in extension.json.
 */
export class Extension {
  host = { version: "", provider: "", model: "", cwd: "", dataDir: "", session: null };
  #declared = new Declared();
  #conversation;
  #capabilities;

  constructor(name, version = "", { capabilities = [] } = {}) {
    this.name = name;
    this.version = version;
    this.#capabilities = capabilities;
  }

  // --- what it does

  command(name, description, handler) {
    this.#declared.commands.set(name, handler);
    this.#register({ type: "register_command", name, description });
  }

  tool({ name, description = "", schema = { type: "object", properties: {} }, deferred, interactive }, handler) {
    this.#declared.tools.set(name, handler);
    this.#register({ type: "register_tool", name, description, schema, deferred, interactive });
  }

  on(events, handler) {
    for (const event of [events].flat()) {
      if (!EVENTS.includes(event)) throw new RangeError(`there is no event ${event}; there is: ${EVENTS.join(", ")}`);
      this.#declared.observers.set(event, [...(this.#declared.observers.get(event) ?? []), handler]);
    }
    this.#subscribe({ events: [events].flat() });
  }

  interceptToolCall(handler) {
    this.#intercept("tool_call", handler);
  }

  interceptTurnStart(handler) {
    this.#intercept("turn_start", handler);
  }

  interceptAssistantMessage(handler) {
    this.#intercept("assistant_message", handler);
  }

  #intercept(event, handler) {
    if (this.#declared.interceptors.has(event)) throw new RangeError(`${event} has an interceptor already`);
    this.#declared.interceptors.set(event, handler);
    this.#subscribe({ intercept: [event] });
  }

  onHello(handler) {
    this.#declared.hello.push(handler);
  }

  onKey(panelId, handler) {
    this.#declared.keys.set(panelId, handler);
  }

  onClose(panelId, handler) {
    this.#declared.closed.set(panelId, handler);
  }

  state(initial) {
    if (this.#declared.state) throw new RangeError("the extension has a state already; one value holds everything");
    this.#declared.state = new State(initial);
    for (const event of SESSION_EVENTS) {
      if (!this.#declared.observers.has(event)) this.#declared.observers.set(event, []);
    }
    return this.#declared.state;
  }

  // --- what it shows

  notify(message, level = "info") {
    this.#send({ type: "notify", level, message });
  }

  clearNotes() {
    this.#send({ type: "clear_notes" });
  }

  status(key, text, level = "info") {
    this.#send({ type: "status", key, level, text });
  }

  widget(id, lines, title = "") {
    this.#send({ type: "widget", id, position: "above_input", title, lines });
  }

  clearWidget(id) {
    this.#send({ type: "widget_clear", id });
  }

  alert(reason = "", kind = "bell") {
    this.#send({ type: "alert", kind, reason });
  }

  submit(text) {
    this.#send({ type: "submit", text });
  }

  openPanel(panel) {
    this.#send({ type: "open_panel", panel: new Panel(panel) });
  }

  renderPanel(panel) {
    const { id, title, lines, footer } = new Panel(panel);
    this.#send({ type: "panel_render", panel_id: id, title, lines, footer });
  }

  closePanel(id) {
    this.#send({ type: "panel_close", panel_id: id });
  }

  #send(frame) {
    if (!this.#conversation) {
      throw new Error(`${frame.type} before run(): the host is not there yet; do it in onHello or later`);
    }
    this.#conversation.send(frame);
  }

  #register(frame) {
    if (this.#conversation?.announced) this.#send(frame);
    else this.#declared.registrations.push(frame);
  }

  #subscribe(fields) {
    if (this.#conversation?.announced) this.#send({ type: "subscribe", ...fields });
  }

  // --- its life

  async run() {
    if (process.stdin.isTTY) {
      process.stderr.write(`${this.name} is an extension: zutd starts it, for example with zutd --ext ${process.cwd()}\n`);
      process.exitCode = 1;
      return;
    }
    const write = process.stdout.write.bind(process.stdout);
    process.stdout.write = process.stderr.write.bind(process.stderr);
    process.stdout.on("error", () => {}); // the host is gone: stdin ends too, and that ends the extension
    try {
      await this.serve(process.stdin, write);
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      process.stderr.write(`${this.name}: ${error.message}\n`);
      process.exitCode = 1;
    } finally {
      process.stdin.destroy();
      setTimeout(() => process.exit(), GRACE_MS).unref(); // whatever the author left open ends with the extension
    }
  }

  async serve(input, write) {
    const conversation = new Conversation(this.name, this.#declared, write);
    this.#conversation = conversation;
    const lines = readLines(input);
    conversation.send({
      type: "hello",
      protocol_version: PROTOCOL_VERSION,
      name: this.name,
      version: this.version,
      capabilities: [...this.#declared.capabilities(), ...this.#capabilities],
    });
    const first = await lines.next();
    if (first.done) return;
    this.host = readAck(first.value);
    for (const handler of this.#declared.hello) await conversation.attempt("onHello", () => handler(this.host));
    await conversation.announce();
    await conversation.serve(lines);
  }
}
