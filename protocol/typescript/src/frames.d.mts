// One line between an extension and the daemon, protocol 2.
// Made of extension.schema.json by scripts/gen_protocol.py; not to be edited.

/** What an extension says. */
export type FromExtension =
  | Hello
  | RegisterCommand
  | RegisterTool
  | Ready
  | Subscribe
  | ToolResultFrame
  | InterceptResponse
  | CommandResponse
  | OpenPanel
  | PanelRender
  | PanelClose
  | Status
  | Widget
  | WidgetClear
  | Notify
  | ClearNotes
  | Alert
  | Submit
  | SubmitSlash
  | ShutdownAck;

/** What an extension is told. */
export type ToExtension =
  | HelloAck
  | CommandInvoked
  | ToolCallFrame
  | ToolCancel
  | EventFrame
  | EventIntercept
  | PanelKey
  | PanelClose
  | Shutdown;

/** The first frame of every extension. `protocol_version` is a major and must be 2. */
export interface Hello {
  type: "hello";
  name: string;
  protocol_version?: number;
  version?: string;
  capabilities?: string[];
}

/** A slash command; names match without regard to case, this spelling is the one sent back. */
export interface RegisterCommand {
  type: "register_command";
  name: string;
  description?: string;
}

/** A tool for the model. `schema` is a JSON Schema object; `deferred` hides it until it is activated. */
export interface RegisterTool {
  type: "register_tool";
  name: string;
  description?: string;
  schema?: unknown;
  deferred?: boolean;
  interactive?: boolean;
}

/** All initial registrations have been sent. */
export interface Ready {
  type: "ready";
}

/** Events to be told of, and events to be asked about. Several subscribe frames add up. */
export interface Subscribe {
  type: "subscribe";
  events?: string[];
  intercept?: string[];
}

/** The answer to a tool call. `details` (opaque; null clears) are the extension's new state on this branch. */
export interface ToolResultFrame {
  type: "tool_result";
  id: string;
  content?: ResultBlock[];
  is_error?: boolean;
  details?: unknown;
  activate_tools?: string[];
}

/** A block of a tool's result: `text`, or `image` with base64 `data`. Any other type is shown as a note. */
export interface ResultBlock {
  type: string;
  text?: string;
  mime_type?: string;
  data?: string;
}

/** The answer to an intercept; every default means: allow, unchanged. */
export interface InterceptResponse {
  type: "event_intercept_response";
  id: string;
  block?: boolean;
  reason?: string;
  modified_args?: unknown;
  replace_text?: string;
  context?: string;
}

/** The answer to a command. `action`: prompt, insert, display, open_panel, noop; `error` wins over it. */
export interface CommandResponse {
  type: "command_response";
  id: string;
  action?: string;
  prompt?: string;
  insert?: string;
  display?: string;
  open_panel?: Panel | null;
  error?: string;
}

/** A panel that an extension draws: lines of text with a title and a footer. */
export interface Panel {
  id?: string;
  title?: string;
  lines?: string[];
  footer?: string;
}

/** A panel opened without being asked for. */
export interface OpenPanel {
  type: "open_panel";
  panel: Panel;
}

/** Fresh content for an open panel; an empty title keeps the old one. */
export interface PanelRender {
  type: "panel_render";
  panel_id: string;
  title?: string;
  lines?: string[];
  footer?: string;
}

/** A panel ends: sent by the extension, or by the daemon when the user closed it. */
export interface PanelClose {
  type: "panel_close";
  panel_id: string;
}

/** A status item, kept until replaced; blank `text` clears it. */
export interface Status {
  type: "status";
  key?: string;
  level?: string;
  text?: string;
}

/** A small widget, kept until replaced. Every position means `above_input`. */
export interface Widget {
  type: "widget";
  id?: string;
  position?: string;
  title?: string;
  lines?: string[];
}

/** Takes a widget away. */
export interface WidgetClear {
  type: "widget_clear";
  id?: string;
}

/** A note for the user, gone with the next prompt. `level`: info, success, warn, error. */
export interface Notify {
  type: "notify";
  level?: string;
  message?: string;
}

/** Takes away every note of this extension. */
export interface ClearNotes {
  type: "clear_notes";
}

/** Asks for the user's attention; `kind` is `bell`. */
export interface Alert {
  type: "alert";
  kind?: string;
  reason?: string;
}

/** Text to be queued as a user's prompt, where the frontend allows it. */
export interface Submit {
  type: "submit";
  text?: string;
}

/** Known from other hosts; here it is noted and ignored. */
export interface SubmitSlash {
  type: "submit_slash";
  text?: string;
}

/** The extension has seen `shutdown` and ends. */
export interface ShutdownAck {
  type: "shutdown_ack";
}

/** The daemon's answer to `hello`: the host, the model, the project, and the extension's own directory. */
export interface HelloAck {
  type: "hello_ack";
  protocol_version: number;
  zut_version: string;
  provider: string;
  model: string;
  cwd: string;
  extension_dir?: string;
  data_dir?: string;
  session?: SessionInfo | null;
}

/** The active branch of a session. `id` is the branch's; `fork_point` is the number of messages before it. */
export interface SessionInfo {
  id: string;
  path: string;
  cwd: string;
  fork_point: number;
  parent_id?: string;
}

/** The user ran a command; `args` is the text after its name, trimmed. */
export interface CommandInvoked {
  type: "command_invoked";
  id: string;
  name: string;
  args: string;
}

/** The model called a tool; `args` is a JSON object (opaque). */
export interface ToolCallFrame {
  type: "tool_call";
  id: string;
  name: string;
  args: unknown;
}

/** The call `id` was given up; only to extensions with the capability `tool_cancel`. */
export interface ToolCancel {
  type: "tool_cancel";
  id: string;
}

/** An event that the extension subscribed to; which fields are there depends on `event`. */
export interface EventFrame {
  type: "event";
  event: string;
  session?: SessionInfo | null;
  state?: unknown;
  step?: number;
  tool_id?: string;
  tool_name?: string;
  tool_args?: unknown;
  tool_preview?: string;
  text?: string;
  stop?: string;
  error?: string;
}

/** A question before something happens; the answer is due within 5 s. */
export interface EventIntercept {
  type: "event_intercept";
  id: string;
  event: string;
  tool_id?: string;
  tool_name?: string;
  tool_args?: unknown;
  step?: number;
  text?: string;
}

/** A key pressed in a panel; `text` is the character of `rune`. A key that has no name here is `unknown`. */
export interface PanelKey {
  type: "panel_key";
  panel_id: string;
  key: string;
  text?: string;
}

/** The daemon wants the extension to end within 2 s. */
export interface Shutdown {
  type: "shutdown";
}
