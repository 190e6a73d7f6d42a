// The types of extension.mjs. The two files stand alone: copy both beside an extension.

/** The major of the protocol between extensions and the host. */
export const PROTOCOL_VERSION: 2;
/** Bytes of the longest line that the host takes, its LF included. */
export const LINE_LIMIT: number;
/** Milliseconds that running handlers get to tidy up when the extension ends. */
export const GRACE_MS: number;

export type Level = "info" | "success" | "warn" | "error";

/** Whatever JSON can say. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

type MaybePromise<T> = T | Promise<T>;

// --- what handlers are given -----------------------------------------------------------------------------------------

/** The active branch: `fork_point` messages are older than it. `path` is empty when nothing is on disk. */
export interface Session {
  id: string;
  path: string;
  cwd: string;
  fork_point: number;
  parent_id?: string;
}

/** Who runs the extension. `cwd` is the user's project, `dataDir` is where the extension keeps its files. */
export interface Host {
  version: string;
  provider: string;
  model: string;
  cwd: string;
  dataDir: string;
  session: Session | null;
}

/** A session event: the active branch, and the extension's own state on it. */
export interface SessionEvent {
  session?: Session;
  /** Absent when there is none. */
  state?: Json;
}

/** The events that an extension can be told of, with their fields. */
export interface Events {
  session_start: SessionEvent;
  session_opened: SessionEvent;
  session_switched: SessionEvent;
  session_forked: SessionEvent;
  session_compacted: SessionEvent;
  turn_start: { step: number };
  tool_call: { tool_id: string; tool_name: string; tool_args: unknown };
  tool_confirmation_requested: { tool_id: string; tool_name: string; tool_preview: string };
  assistant_message: { text: string };
  turn_end: { stop: "end_turn" | "tool_use" | "length" | "error" | "aborted"; error?: string };
}
export type EventName = keyof Events;
export type Event<Name extends EventName = EventName> = { [E in Name]: { event: E } & Events[E] }[Name];

/** A tool call: `signal` is aborted when nobody waits for the result any more. */
export interface Call {
  id: string;
  signal: AbortSignal;
}

/** A key pressed in a panel: `up`, `enter`, ...; `text` is the character when `key` is `rune`. */
export interface Key {
  panelId: string;
  key: string;
  text: string;
}

// --- what handlers give back -----------------------------------------------------------------------------------------

/** Throw it in a handler: the command or tool fails with exactly this text. */
export class ExtensionError extends Error {}

/** The program at the other end is no host that this file can talk to. */
export class HostError extends Error {}

/** A command's answer: this text goes to the model as if the user had typed it. */
export class Prompt {
  constructor(text: string);
  text: string;
}

/** A command's answer: this text is put into the user's editor. */
export class Insert {
  constructor(text: string);
  text: string;
}

export interface PanelFields {
  id: string;
  title?: string;
  lines?: readonly string[];
  footer?: string;
}

/** Lines of text that the user can send keys to; as a command's answer it opens. */
export class Panel {
  constructor(fields: PanelFields);
  id: string;
  title: string;
  lines: readonly string[];
  footer: string;
}

/** An interceptor's no. The model reads the reason of a refused tool call, the user that of anything else. */
export class Block {
  constructor(reason?: string);
  reason: string;
}

/** A picture in a tool's result: the bytes of a PNG, JPEG, GIF or WebP file. */
export class Image {
  constructor(data: Uint8Array, mimeType?: string);
  data: Uint8Array;
  mimeType: string;
}

/** What a tool returns: text, an image, several of these, or anything else, which is sent as JSON. */
export type Content = string | Image | readonly (string | Image)[] | Json | undefined;

/**
 * A tool's result with more than its content. `details` replaces the extension's state on this branch (null clears
 * it). `activate` names deferred tools that the model may use from now on.
 */
export class ToolResult {
  constructor(content?: Content, more?: { isError?: boolean; details?: Json; activate?: readonly string[] });
  content: Content;
  isError: boolean;
  details: Json | undefined;
  activate: readonly string[];
}

/** A value that belongs to the active branch of the conversation; see `Extension.state`. */
export class State<T> {
  constructor(initial: T);
  /** Any JSON value. Change it as you like; tool results carry it to the host. */
  value: T;
  restore(event: Event): void;
  toSave(): T | undefined;
  forgetSaved(): void;
}

export type CommandAnswer = string | Prompt | Insert | Panel | undefined | void | null;

/** What the model is told of a tool. */
export interface Tool {
  name: string;
  description?: string;
  /** A JSON Schema of the type "object"; without it the tool takes no arguments. */
  schema?: { type: "object"; [word: string]: unknown };
  /** Hidden from the model until a result activates it. */
  deferred?: boolean;
  /** Waits for a person: no deadline, and it needs a frontend that shows panels. */
  interactive?: boolean;
}

// --- the extension ---------------------------------------------------------------------------------------------------

/**
 * An extension: declare what it does, then call `run`. Handlers may be async. They run side by side, only those of
 * events, keys and closed panels run one after the other. `name` must be the one in extension.json.
 */
export class Extension {
  constructor(name: string, version?: string, more?: { capabilities?: readonly string[] });
  readonly name: string;
  readonly version: string;
  /** Who runs this extension; empty until the handshake. */
  host: Host;

  /** A slash command. The handler gets what stands after the name, and returns a text to show, or one of the classes. */
  command(name: string, description: string, handler: (args: string) => MaybePromise<CommandAnswer>): void;

  /** A tool for the model. The arguments are the model's own and are not checked against the schema. */
  tool<Args = Record<string, unknown>>(
    tool: Tool,
    handler: (args: Args, call: Call) => MaybePromise<Content | ToolResult | void>,
  ): void;

  /** Be told of events. */
  on<Name extends EventName>(events: Name | readonly Name[], handler: (event: Event<Name>) => unknown): void;

  /** Be asked before a tool runs: return a Block, other arguments, or nothing. */
  interceptToolCall(
    handler: (tool: string, args: Record<string, any>) => MaybePromise<Block | Record<string, unknown> | void | null>,
  ): void;

  /** Be asked before the model is called: return a Block, context for this call only, or nothing. */
  interceptTurnStart(handler: (step: number) => MaybePromise<Block | string | void | null>): void;

  /** Be asked before the user sees an answer: return a Block, another text, or nothing. */
  interceptAssistantMessage(handler: (text: string) => MaybePromise<Block | string | void | null>): void;

  /** Be called with the host before registrations are sent; more can be declared there. */
  onHello(handler: (host: Host) => unknown): void;

  /** Be told of keys in a panel. */
  onKey(panelId: string, handler: (key: Key) => unknown): void;

  /** Be told that the user closed a panel. */
  onClose(panelId: string, handler: (panelId: string) => unknown): void;

  /**
   * A value kept with the conversation: each branch has its own, forks begin with the one of their moment. Every tool
   * result saves what has changed since the last; changes made elsewhere wait in memory for the next tool result.
   */
  state<T>(initial: T): State<T>;

  /** Show a note; it goes with the user's next prompt. */
  notify(message: string, level?: Level): void;
  /** Take this extension's notes away. */
  clearNotes(): void;
  /** Show a status item until it is replaced; an empty text takes it away. */
  status(key: string, text: string, level?: Level): void;
  /** Show a few lines above the input until they are replaced. */
  widget(id: string, lines: readonly string[], title?: string): void;
  /** Take a widget away. */
  clearWidget(id: string): void;
  /** Ask for the user's attention. */
  alert(reason?: string, kind?: string): void;
  /** Queue a prompt as if the user had typed it, where the frontend allows that. */
  submit(text: string): void;
  /** Open a panel without being asked for it. */
  openPanel(panel: PanelFields): void;
  /** Draw an open panel anew; one that is not open stays closed. */
  renderPanel(panel: PanelFields): void;
  /** Close a panel. */
  closePanel(id: string): void;

  /**
   * Serve until the host says `shutdown` or goes away. Everything written with `console` goes to the extension's log,
   * as stdout belongs to the host.
   */
  run(): Promise<void>;

  /** Like `run`, over any stream of bytes and any function that takes lines. Rejects with a HostError. */
  serve(input: AsyncIterable<Uint8Array>, write: (line: string) => unknown): Promise<void>;
}
