// One line between a frontend and the daemon, in either dialect.
// Made of client.schema.json by scripts/gen_protocol.py; not to be edited.

export type FromFrontend = TypedCommand | RpcCommand;

export type FromDaemon = SuccessResponse | FailureResponse | Event | RpcResult | RpcError | RpcEvent;

/** Chosen by the frontend, echoed as it came. */
export type RequestId = string | number;

/** Why a command was not carried out. */
export type ErrorKind =
  | "parse_error"
  | "invalid_request"
  | "unknown_command"
  | "invalid_params"
  | "internal"
  | "auth_required"
  | "busy"
  | "not_found"
  | "conflict"
  | "no_session"
  | "extension_error"
  | "provider_error"
  | "cancelled";

/** Typed lines: a command. */
export type TypedCommand = {
  id?: RequestId;
} & (
  | HelloCommand
  | Ping
  | Prompt
  | Steer
  | QueueList
  | QueueRemove
  | Abort
  | Compact
  | GetState
  | GetMessages
  | Clear
  | SetModel
  | SetReasoning
  | GetModels
  | NewSession
  | ListSessions
  | {
      type: "open_session";
      session_id?: string;
      path?: string;
      branch?: string;
      read_only?: boolean;
    }
  | {
      type: "rename_session";
      title: string;
      session_id?: string;
    }
  | {
      type: "delete_session";
      session_id: string;
    }
  | {
      type: "export_session";
      format: "zutd" | "zut" | "markdown" | "html";
      path: string;
      session_id?: string;
    }
  | ImportSession
  | {
      type: "get_tree";
      session_id?: string;
    }
  | Fork
  | SwitchBranch
  | GetExtState
  | GetCommands
  | InvokeCommand
  | GetTools
  | GetExtensions
  | ReloadExt
  | PanelKeyCommand
  | PanelCloseCommand
  | ConfirmResponse
  | EventsSince
  | ShutdownCommand
);

/** Typed lines: a command was carried out. */
export type SuccessResponse =
  | {
      type: "response";
      id?: RequestId;
      command: "hello";
      success: true;
      data: HelloReply;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "ping";
      success: true;
      data: Pong;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "prompt";
      success: true;
      data: PromptReply;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "steer";
      success: true;
      data: PromptReply;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "queue_list";
      success: true;
      data: QueueReply;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "queue_remove";
      success: true;
      data: QueueReply;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "abort";
      success: true;
      data: AbortReply;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "compact";
      success: true;
      data: StartedReply;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "get_state";
      success: true;
      data: StateReply;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "get_messages";
      success: true;
      data: MessagesReply;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "clear";
      success: true;
      data: SessionReply;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "set_model";
      success: true;
      data: ModelReply;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "set_reasoning";
      success: true;
      data: ReasoningReply;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "get_models";
      success: true;
      data: ModelsReply;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "new_session";
      success: true;
      data: SessionReply;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "list_sessions";
      success: true;
      data: SessionsReply;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "open_session";
      success: true;
      data: OpenReply;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "rename_session";
      success: true;
      data: Done;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "delete_session";
      success: true;
      data: Done;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "export_session";
      success: true;
      data: ExportReply;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "import_session";
      success: true;
      data: ImportReply;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "get_tree";
      success: true;
      data: TreeReply;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "fork";
      success: true;
      data: SessionReply;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "switch_branch";
      success: true;
      data: SessionReply;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "get_ext_state";
      success: true;
      data: ExtStateReply;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "get_commands";
      success: true;
      data: CommandsReply;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "invoke_command";
      success: true;
      data: InvokeReply;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "get_tools";
      success: true;
      data: ToolsReply;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "get_extensions";
      success: true;
      data: ExtensionsReply;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "reload_ext";
      success: true;
      data: ReloadReply;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "panel_key";
      success: true;
      data: Done;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "panel_close";
      success: true;
      data: Done;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "confirm_response";
      success: true;
      data: Done;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "events_since";
      success: true;
      data: EventsReply;
    }
  | {
      type: "response";
      id?: RequestId;
      command: "shutdown";
      success: true;
      data: Done;
    };

/** Typed lines: a command was not carried out. */
export interface FailureResponse {
  type: "response";
  id?: RequestId;
  /** Empty when it could not be read. */
  command: string;
  success: false;
  /** A sentence for people. */
  error: string;
  code: ErrorKind;
  details?: Record<string, unknown>;
}

/** Typed lines: something told without being asked. */
export type Event =
  | TurnStart
  | RequestStarted
  | RetryScheduled
  | UserMessage
  | AssistantStart
  | TextDelta
  | ThinkingDelta
  | ToolUseStart
  | ToolUseArgs
  | ToolUseEnd
  | ToolCallEvent
  | ToolExecutionStarted
  | ToolProgress
  | ToolResultEvent
  | AssistantMessage
  | UsageEvent
  | TurnEnd
  | DoneEvent
  | ErrorEvent
  | CompactStart
  | CompactDone
  | PlanUpdate
  | GoalUpdate
  | PromptStarted
  | PromptReturned
  | PromptRemoved
  | ConfirmRequest
  | RequestResolved
  | SessionOpened
  | SessionSwitched
  | SessionForked
  | SessionCompacted
  | SessionRenamed
  | ExtNotify
  | ExtDisplay
  | ExtAlert
  | ExtClearNotes
  | ExtStatus
  | ExtWidget
  | ExtWidgetClear
  | ExtChromeClear
  | ExtPanelOpen
  | ExtPanelRender
  | ExtPanelClose
  | ExtInsert
  | ExtSubmit
  | ExtError
  | ExtReady
  | ExtExit;

/** JSON-RPC 2.0: a command. */
export interface RpcCommand {
  jsonrpc: "2.0";
  /** Without it nothing is answered. */
  id?: string | number | null;
  method:
    | "hello"
    | "ping"
    | "prompt"
    | "steer"
    | "queue_list"
    | "queue_remove"
    | "abort"
    | "compact"
    | "get_state"
    | "get_messages"
    | "clear"
    | "set_model"
    | "set_reasoning"
    | "get_models"
    | "new_session"
    | "list_sessions"
    | "open_session"
    | "rename_session"
    | "delete_session"
    | "export_session"
    | "import_session"
    | "get_tree"
    | "fork"
    | "switch_branch"
    | "get_ext_state"
    | "get_commands"
    | "invoke_command"
    | "get_tools"
    | "get_extensions"
    | "reload_ext"
    | "panel_key"
    | "panel_close"
    | "confirm_response"
    | "events_since"
    | "shutdown";
  /** The command's fields without `type`. */
  params?: Record<string, unknown>;
}

/** JSON-RPC 2.0: a command was carried out. */
export interface RpcResult {
  jsonrpc: "2.0";
  id: string | number | null;
  /** The command's reply. */
  result: Record<string, unknown>;
}

/** JSON-RPC 2.0: a command was not carried out. */
export interface RpcError {
  jsonrpc: "2.0";
  id: string | number | null;
  /** Why not. */
  error: {
    code:
      | -32700
      | -32600
      | -32601
      | -32602
      | -32603
      | -32000
      | -32001
      | -32002
      | -32003
      | -32004
      | -32010
      | -32011
      | -32800;
    /** A sentence for people. */
    message: string;
    /** The kind of the error; details beside it. */
    data: {
      kind: ErrorKind;
    };
  };
}

/** JSON-RPC 2.0: an event. */
export interface RpcEvent {
  jsonrpc: "2.0";
  method:
    | "turn_start"
    | "request_started"
    | "retry_scheduled"
    | "user_message"
    | "assistant_start"
    | "text_delta"
    | "thinking_delta"
    | "tool_use_start"
    | "tool_use_args"
    | "tool_use_end"
    | "tool_call"
    | "tool_execution_started"
    | "tool_progress"
    | "tool_result"
    | "assistant_message"
    | "usage"
    | "turn_end"
    | "done"
    | "error"
    | "compact_start"
    | "compact_done"
    | "plan_update"
    | "goal_update"
    | "prompt_started"
    | "prompt_returned"
    | "prompt_removed"
    | "confirm_request"
    | "request_resolved"
    | "session_opened"
    | "session_switched"
    | "session_forked"
    | "session_compacted"
    | "session_renamed"
    | "ext_notify"
    | "ext_display"
    | "ext_alert"
    | "ext_clear_notes"
    | "ext_status"
    | "ext_widget"
    | "ext_widget_clear"
    | "ext_chrome_clear"
    | "ext_panel_open"
    | "ext_panel_render"
    | "ext_panel_close"
    | "ext_insert"
    | "ext_submit"
    | "ext_error"
    | "ext_ready"
    | "ext_exit";
  /** The event's fields without `type`. */
  params: {
    /** Rises by 1 within an epoch. */
    seq: number;
    /** The turn that it belongs to, if it belongs to one. */
    turn_id?: string;
  };
}

/** Says who the frontend is and what it can do; must come first, with the token, when a token is set. */
export interface HelloCommand {
  type: "hello";
  token?: string;
  client?: ClientInfo | null;
  capabilities?: string[];
  trust_project?: boolean;
}

/** Who the frontend is. */
export interface ClientInfo {
  name?: string;
  version?: string;
}

/** Is anyone there? */
export interface Ping {
  type: "ping";
}

/** Text for the agent. `when` says what happens while a turn runs: queue, steer or reject. */
export interface Prompt {
  type: "prompt";
  message?: string;
  images?: Image[];
  prompt_id?: string;
  when?: "queue" | "steer" | "reject";
  literal?: boolean;
  output_schema?: unknown;
  output_mode?: "auto" | "native" | "words";
}

/** A picture; `data` is standard base64 with padding. */
export interface Image {
  type: "image";
  mime_type: string;
  data: string;
}

/** Text that the running turn gets after the tool call that is running. */
export interface Steer {
  type: "steer";
  message?: string;
  images?: Image[];
  prompt_id?: string;
}

/** The prompts that wait. */
export interface QueueList {
  type: "queue_list";
}

/** Takes one waiting prompt out of the queue. */
export interface QueueRemove {
  type: "queue_remove";
  prompt_id: string;
}

/** Ends the running turn; `queue: drop` also returns what waits. */
export interface Abort {
  type: "abort";
  queue?: "keep" | "drop";
}

/** Replaces the older part of the context with a summary. */
export interface Compact {
  type: "compact";
  instructions?: string;
}

/** Everything needed to draw. */
export interface GetState {
  type: "get_state";
}

/** The transcript of a branch (default: the active one), after a row, at most `limit` messages. */
export interface GetMessages {
  type: "get_messages";
  branch?: string;
  after?: string;
  limit?: number;
}

/** Starts a new branch without messages; nothing is deleted. */
export interface Clear {
  type: "clear";
}

/** Another model from the next step on. */
export interface SetModel {
  type: "set_model";
  model: string;
  provider?: string;
}

/** Another reasoning level from the next step on. */
export interface SetReasoning {
  type: "set_reasoning";
  reasoning: "off" | "minimum" | "low" | "medium" | "high" | "xhigh" | "max";
}

/** The models of a provider (default: the current one). */
export interface GetModels {
  type: "get_models";
  provider?: string;
}

/** A new session; `persist: false` keeps it in memory. */
export interface NewSession {
  type: "new_session";
  title?: string;
  persist?: boolean;
}

/** Sessions of a directory (default: this one; `*`: all). */
export interface ListSessions {
  type: "list_sessions";
  cwd?: string;
  query?: string;
  cursor?: string;
  limit?: number;
}

/** Opens a session by id (a prefix will do) or path, at a branch (default: the active one). */
export interface OpenSession {
  type: "open_session";
  id?: string;
  path?: string;
  branch?: string;
  read_only?: boolean;
}

/** Gives the session another title. */
export interface RenameSession {
  type: "rename_session";
  title: string;
  id?: string;
}

/** Deletes a session that nobody uses. */
export interface DeleteSession {
  type: "delete_session";
  id: string;
}

/** Writes a branch into a new file: the active one, or that of a session (a prefix will do) or branch `id`. */
export interface ExportSession {
  type: "export_session";
  format: "zutd" | "zut" | "markdown" | "html";
  path: string;
  id?: string;
}

/** Takes over a file of zutd, zut or pi, or all those below a directory, and opens the newest session of them. */
export interface ImportSession {
  type: "import_session";
  path: string;
}

/** The branches of a session (default: the open one). */
export interface GetTree {
  type: "get_tree";
  id?: string;
}

/** A new branch at a row (`r12`) or after a number of messages (default: now); it becomes active. */
export interface Fork {
  type: "fork";
  at?: string | number | null;
  title?: string;
  to?: "branch" | "file";
}

/** Makes another branch the active one. */
export interface SwitchBranch {
  type: "switch_branch";
  branch: string;
}

/** An extension's state on a branch (default: the active one), at a row or message count (default: its tip). */
export interface GetExtState {
  type: "get_ext_state";
  extension: string;
  branch?: string;
  at?: string | number | null;
}

/** The slash commands. */
export interface GetCommands {
  type: "get_commands";
}

/** Runs a slash command. */
export interface InvokeCommand {
  type: "invoke_command";
  name: string;
  args?: string;
}

/** The tools. */
export interface GetTools {
  type: "get_tools";
}

/** The extensions and how they are. */
export interface GetExtensions {
  type: "get_extensions";
}

/** Stops every extension, reads the manifests again, starts what there is now. */
export interface ReloadExt {
  type: "reload_ext";
}

/** A key for an open panel; `text` is the character when `key` is `rune`. */
export interface PanelKeyCommand {
  type: "panel_key";
  extension: string;
  panel_id: string;
  key: string;
  text?: string;
}

/** The user closed a panel. */
export interface PanelCloseCommand {
  type: "panel_close";
  extension: string;
  panel_id: string;
}

/** The answer to a `confirm_request`; `reason` is told to the model when it is denied. */
export interface ConfirmResponse {
  type: "confirm_response";
  request_id: string;
  decision: "allow" | "allow_tool" | "allow_session" | "deny";
  reason?: string;
}

/** The events after `seq` of `epoch`, for a frontend that lost some. */
export interface EventsSince {
  type: "events_since";
  epoch: string;
  seq: number;
}

/** Stops the daemon in good order, after the reply. */
export interface ShutdownCommand {
  type: "shutdown";
}

/** Who answers. `epoch` names this run of the daemon; events' `seq` counts within it. */
export interface HelloReply {
  protocol_version: number;
  version: string;
  provider: string;
  model: string;
  capabilities: string[];
  session: SessionInfo;
  epoch: string;
}

/** The active branch of a session. `id` is the branch's; `fork_point` is the number of messages before it. */
export interface SessionInfo {
  id: string;
  path: string;
  cwd: string;
  fork_point: number;
  parent_id?: string;
}

/** Alive. */
export interface Pong {
  pong: boolean;
}

/** The prompt was accepted: it runs (`started`) or waits at `position` (1 is next). */
export interface PromptReply {
  started: boolean;
  prompt_id: string;
  queued?: boolean;
  position?: number;
}

/** The waiting prompts, the next one first. */
export interface QueueReply {
  queue: QueuedView[];
}

/** A prompt that waits. `origin` is `client` or `extension:NAME`; `when` is `queue` or `steer`. */
export interface QueuedView {
  prompt_id: string;
  origin: string;
  when: string;
  message: string;
  images: number;
}

/** Whether there was anything to abort. */
export interface AbortReply {
  aborted: boolean;
}

/** The work has begun; events tell the rest. */
export interface StartedReply {
  started: boolean;
}

/** Everything a frontend that has just attached needs to draw; all lists are complete. */
export interface StateReply {
  provider: string;
  model: string;
  reasoning: string;
  cwd: string;
  message_count: number;
  busy: boolean;
  usage: UsageView;
  turn_usage: UsageView;
  session_usage: UsageView;
  session: SessionInfo;
  branch: string;
  title: string;
  queue: QueuedView[];
  context: ContextView;
  plan: Plan | null;
  goal: Goal | null;
  extensions: ExtensionView[];
  statuses: StatusView[];
  widgets: WidgetView[];
  panels: PanelView[];
  notes: NoteView[];
  pending: unknown[];
  instructions: string[];
  left_out: string[];
  ext_events_dropped: number;
  epoch: string;
  seq: number;
}

/** Tokens and cost; `input` excludes cached tokens, `reasoning` is null when unknown. */
export interface UsageView {
  input: number;
  output: number;
  reasoning: number | null;
  cache_read: number;
  cache_write: number;
  cache_measured_prompt: number;
  cache_measured_read: number;
  cost_usd: number;
}

/** How full the model's window is, in tokens; `used` is measured at the last request. */
export interface ContextView {
  used: number;
  window: number;
}

/** The whole plan, in order; each update replaces it. `explanation` says why it was updated. */
export interface Plan {
  plan: PlanStep[];
  explanation?: string;
}

/** One step of a plan. */
export interface PlanStep {
  step: string;
  status: "pending" | "in_progress" | "completed";
}

/** What is to be reached, and how it stands; `reason` says what blocks it, or how it was completed. */
export interface Goal {
  objective: string;
  status: "active" | "complete" | "blocked";
  reason?: string;
}

/** One extension: what it is, how it is, what it has registered, what went wrong. */
export interface ExtensionView {
  name: string;
  version: string;
  source: string;
  state: string;
  pid: number;
  directory: string;
  commands: string[];
  tools: string[];
  events: string[];
  intercepts: string[];
  conflicts: string[];
  warnings: string[];
  restarts: number;
  missed_deadlines: number;
  dropped_events: number;
  intercept_latency_ms: LatencyView;
  tool_latency_ms: LatencyView;
  command_latency_ms: LatencyView;
  ready_ms: number;
  queue_depth: number;
  last_stderr: string[];
  log: string;
  error?: string;
  themes?: ThemeView[];
  permissions?: PermissionsView | null;
  sandbox?: SandboxView | null;
}

/** Milliseconds over the last 512 answers. */
export interface LatencyView {
  count: number;
  p50: number;
  p99: number;
}

/** A theme that an extension brings: the file at `path` is the frontend's to read. */
export interface ThemeView {
  name: string;
  path: string;
  description: string;
}

/** What an extension says it needs: paths as in its manifest, and the names of variables that it is given. */
export interface PermissionsView {
  read: string[];
  write: string[];
  net: boolean;
  run: boolean;
  env: string[];
}

/** How an extension is kept to its permissions: the mode (`auto`, `require`, `off`), by what it is done, which of read, write, net and run are not enforced, and what it can do all the same. */
export interface SandboxView {
  mode: string;
  by: string[];
  not_enforced: string[];
  gaps: string[];
}

/** A status item that is up. */
export interface StatusView {
  extension: string;
  key: string;
  level: string;
  text: string;
}

/** A widget that is up. */
export interface WidgetView {
  extension: string;
  id: string;
  position: string;
  title: string;
  lines: string[];
}

/** A panel that is open. */
export interface PanelView {
  extension: string;
  panel_id: string;
  title: string;
  lines: string[];
  footer: string;
}

/** A note that is up. */
export interface NoteView {
  extension: string;
  level: string;
  message: string;
}

/** A page of the transcript; `next` is the row to go on after, empty at the end. */
export interface MessagesReply {
  messages: MessageView[];
  next?: string;
}

/** One message of a transcript; `id` is its row (`r12`). Reasoning is left out. */
export interface MessageView {
  role: string;
  content: (Text | ImageSize | ToolCall | ToolResultView)[];
  time: string;
  id?: string;
  stop?: string;
  partial?: boolean;
}

/** Plain text. */
export interface Text {
  type: "text";
  text: string;
}

/** A picture in a transcript: its type and size in bytes, not its data. */
export interface ImageSize {
  type: "image";
  mime_type: string;
  bytes: number;
}

/** A call that the model asked for. */
export interface ToolCall {
  type: "tool_call";
  id: string;
  name: string;
  args: unknown;
  invalid?: string;
}

/** A tool's result in a transcript. */
export interface ToolResultView {
  type: "tool_result";
  call_id: string;
  is_error: boolean;
  content: (Text | ImageSize)[];
  name?: string;
  extension?: string;
}

/** The session and branch that are active now. */
export interface SessionReply {
  session: SessionInfo;
}

/** The model in use from the next step on. */
export interface ModelReply {
  model: string;
  provider: string;
}

/** The reasoning level in use from the next step on. */
export interface ReasoningReply {
  reasoning: string;
}

/** The models known for a provider. */
export interface ModelsReply {
  models: ModelView[];
}

/** A model that can be chosen; prices are US dollars per million tokens. */
export interface ModelView {
  id: string;
  provider: string;
  context_window: number;
  max_output: number;
  reasoning: boolean;
  price_input: number;
  price_output: number;
  price_cache_read: number;
  price_cache_write: number;
}

/** A page of sessions, the newest first; `next` is a cursor, empty at the end. */
export interface SessionsReply {
  sessions: SessionSummary[];
  next?: string;
}

/** One line of a list of sessions. Times are RFC 3339; `messages` counts the active branch. */
export interface SessionSummary {
  id: string;
  path: string;
  title: string;
  cwd: string;
  started: string;
  modified: string;
  messages: number;
  branches: number;
  in_use: boolean;
}

/** The opened session, its number of messages, and what had to be repaired. */
export interface OpenReply {
  session: SessionInfo;
  messages: number;
  repaired: string[];
}

/** The command was carried out; there is nothing to tell. */
export interface Done {}

/** The file that was written; `notes` say what is not in it. */
export interface ExportReply {
  path: string;
  notes: string[];
}

/** The session that was made (of several, the newest); `notes` say what could not be taken over. */
export interface ImportReply {
  session: SessionInfo;
  notes: string[];
}

/** The branches of a session. */
export interface TreeReply {
  branches: BranchInfo[];
}

/** One branch of a session's tree. `fork_row` is the row it hangs on, empty for a root. */
export interface BranchInfo {
  id: string;
  fork_point: number;
  title: string;
  messages: number;
  active: boolean;
  parent_id?: string;
  fork_row?: string;
}

/** An extension's state (opaque) or null. */
export interface ExtStateReply {
  state: unknown;
}

/** The slash commands that can be run. */
export interface CommandsReply {
  commands: CommandView[];
}

/** A slash command that can be run. `source` is `extension` or `skill`. */
export interface CommandView {
  name: string;
  description: string;
  source: string;
  extension?: string;
}

/** What the command answered. `prompt_id` is there when its prompt was queued. */
export interface InvokeReply {
  action: string;
  extension: string;
  prompt?: string;
  insert?: string;
  display?: string;
  open_panel?: Panel | null;
  prompt_id?: string;
}

/** A panel that an extension draws: lines of text with a title and a footer. */
export interface Panel {
  id?: string;
  title?: string;
  lines?: string[];
  footer?: string;
}

/** The tools of the session. */
export interface ToolsReply {
  tools: ToolView[];
}

/** A tool as the model sees it; `source` is `builtin` or `extension`. */
export interface ToolView {
  name: string;
  source: string;
  description: string;
  schema: unknown;
  active: boolean;
  deferred: boolean;
  extension?: string;
}

/** Every extension that was found. */
export interface ExtensionsReply {
  extensions: ExtensionView[];
}

/** How many extensions were stopped, run again, and are ready; what is wrong with the others. */
export interface ReloadReply {
  stopped: number;
  loaded: number;
  ready: number;
  errors: string[];
}

/** How many events follow again, or the gap that prevents it. */
export interface EventsReply {
  events?: unknown[];
  gap?: Gap | null;
}

/** Events before `first_seq` of `epoch` are gone. */
export interface Gap {
  first_seq: number;
  epoch: string;
}

/** One model call begins; `step` counts them within the prompt, from 1. */
export interface TurnStart {
  type: "turn_start";
  step: number;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** A request leaves for the provider; `scope` is `provider`. */
export interface RequestStarted {
  type: "request_started";
  provider: string;
  model: string;
  scope: string;
  attempt: number;
  max_attempts: number;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** Attempt `attempt` comes after `delay_ms`; `reason` is the kind of the error before it. */
export interface RetryScheduled {
  type: "retry_scheduled";
  scope: string;
  attempt: number;
  max_attempts: number;
  delay_ms: number;
  reason?: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** A user's message was added to the conversation. */
export interface UserMessage {
  type: "user_message";
  content: (Text | ImageSize | ToolCall | ToolResultView)[];
  time: string;
  id?: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** The provider begins to answer. */
export interface AssistantStart {
  type: "assistant_start";
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** A piece of the answer. */
export interface TextDelta {
  type: "text_delta";
  delta: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** A piece of the reasoning. */
export interface ThinkingDelta {
  type: "thinking_delta";
  delta: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** The model begins to write a tool call. */
export interface ToolUseStart {
  type: "tool_use_start";
  id: string;
  name: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** A piece of the call's argument JSON. */
export interface ToolUseArgs {
  type: "tool_use_args";
  id: string;
  delta: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** The call's arguments are complete. */
export interface ToolUseEnd {
  type: "tool_use_end";
  id: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** The model wants this call; `args` (opaque) are as it wrote them. */
export interface ToolCallEvent {
  type: "tool_call";
  id: string;
  name: string;
  args: unknown;
  extension?: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** Guards have passed, the tool runs; `args` are there when `rewritten_by` changed them. */
export interface ToolExecutionStarted {
  type: "tool_execution_started";
  id: string;
  name: string;
  args?: unknown;
  rewritten_by?: string[];
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** Output of a running tool. */
export interface ToolProgress {
  type: "tool_progress";
  id: string;
  text: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** A tool has ended; `details` (opaque) are those of built-in tools. */
export interface ToolResultEvent {
  type: "tool_result";
  id: string;
  is_error: boolean;
  content: (Text | ImageSize)[];
  extension?: string;
  details?: unknown;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** The whole answer of one step, as the user sees it. */
export interface AssistantMessage {
  type: "assistant_message";
  content: (Text | ImageSize | ToolCall | ToolResultView)[];
  time: string;
  id?: string;
  partial?: boolean;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** What one model call used. `turn_usage` is that of the prompt so far, `session_usage` that of the session. */
export interface UsageEvent {
  type: "usage";
  input: number;
  output: number;
  reasoning: number | null;
  cache_read: number;
  cache_write: number;
  cache_measured_prompt: number;
  cache_measured_read: number;
  cost_usd: number;
  cumulative: UsageView;
  turn_usage: UsageView;
  session_usage: UsageView;
  attempt?: "" | "failed" | "aborted";
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** One model call has ended. */
export interface TurnEnd {
  type: "turn_end";
  stop: "end_turn" | "tool_use" | "length" | "error" | "aborted";
  error?: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** The prompt or compaction has ended; nothing more comes of it. */
export interface DoneEvent {
  type: "done";
  prompt_id: string;
  outcome: "ok" | "error" | "aborted" | "blocked" | "limit" | "schema";
  usage: UsageView;
  turn_usage: UsageView;
  session_usage: UsageView;
  output?: unknown;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** Something failed; `code` is a kind of error, `retryable` says whether trying again can help. */
export interface ErrorEvent {
  type: "error";
  message: string;
  code?: string;
  retryable?: boolean;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** A compaction begins; `reason`: manual, threshold, overflow. */
export interface CompactStart {
  type: "compact_start";
  reason: "manual" | "threshold" | "overflow";
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** The older part of the context is now this summary; sizes are tokens. */
export interface CompactDone {
  type: "compact_done";
  summary: string;
  tokens_before: number;
  tokens_after: number;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** The agent wrote down its steps: the whole plan. `id` is the call that did it. */
export interface PlanUpdate {
  type: "plan_update";
  plan: PlanStep[];
  explanation?: string;
  id?: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** The agent set its goal, or said how it stands: the whole goal. `id` is the call that did it. */
export interface GoalUpdate {
  type: "goal_update";
  objective: string;
  status: "active" | "complete" | "blocked";
  reason?: string;
  id?: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** A prompt that waited begins to run, or reaches the running turn. */
export interface PromptStarted {
  type: "prompt_started";
  prompt_id: string;
  origin: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** A prompt that waited is given back: the queue was dropped, or the daemon stops. */
export interface PromptReturned {
  type: "prompt_returned";
  prompt_id: string;
  origin: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** A prompt that waited was taken out. */
export interface PromptRemoved {
  type: "prompt_removed";
  prompt_id: string;
  origin: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** May this tool run? Answered with `confirm_response`. `args` (opaque) are those that will run. */
export interface ConfirmRequest {
  type: "confirm_request";
  request_id: string;
  tool_id: string;
  tool_name: string;
  tool_preview: string;
  args: unknown;
  args_digest: string;
  diff?: string;
  extension?: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** Nobody needs to answer a request any more; `by`: frontend, timeout, abort. */
export interface RequestResolved {
  type: "request_resolved";
  request_id: string;
  by: "frontend" | "timeout" | "abort";
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** Another session is open. */
export interface SessionOpened {
  type: "session_opened";
  session: SessionInfo;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** Another branch is active. */
export interface SessionSwitched {
  type: "session_switched";
  session: SessionInfo;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** A branch was made. */
export interface SessionForked {
  type: "session_forked";
  session: SessionInfo;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** The branch's context was compacted. */
export interface SessionCompacted {
  type: "session_compacted";
  session: SessionInfo;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** The session has another title. */
export interface SessionRenamed {
  type: "session_renamed";
  session: SessionInfo;
  title: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** A note; it goes with the next prompt. */
export interface ExtNotify {
  type: "ext_notify";
  extension: string;
  level: string;
  message: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** Text a command wants shown. */
export interface ExtDisplay {
  type: "ext_display";
  extension: string;
  text: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** An extension asks for attention. */
export interface ExtAlert {
  type: "ext_alert";
  extension: string;
  kind: string;
  reason?: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** Drop this extension's notes. */
export interface ExtClearNotes {
  type: "ext_clear_notes";
  extension: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** A status item; empty `text` clears it. */
export interface ExtStatus {
  type: "ext_status";
  extension: string;
  key: string;
  level: string;
  text: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** A widget. */
export interface ExtWidget {
  type: "ext_widget";
  extension: string;
  id: string;
  position: string;
  title: string;
  lines: string[];
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** Drop a widget. */
export interface ExtWidgetClear {
  type: "ext_widget_clear";
  extension: string;
  id: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** The extension exited: drop its status, widgets, notes and panels. */
export interface ExtChromeClear {
  type: "ext_chrome_clear";
  extension: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** A panel opens. */
export interface ExtPanelOpen {
  type: "ext_panel_open";
  extension: string;
  panel_id: string;
  title: string;
  lines: string[];
  footer: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** An open panel is drawn anew. */
export interface ExtPanelRender {
  type: "ext_panel_render";
  extension: string;
  panel_id: string;
  title: string;
  lines: string[];
  footer: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** A panel closes. */
export interface ExtPanelClose {
  type: "ext_panel_close";
  extension: string;
  panel_id: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** Text for the frontend's editor. */
export interface ExtInsert {
  type: "ext_insert";
  extension: string;
  text: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** An extension submitted a prompt; `accepted` says whether it was queued. */
export interface ExtSubmit {
  type: "ext_submit";
  extension: string;
  text: string;
  accepted: boolean;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** Something went wrong with an extension; `exit_status` is its exit status or signal, where it exited. */
export interface ExtError {
  type: "ext_error";
  extension: string;
  stage: "load" | "handshake" | "runtime" | "intercept" | "command" | "tool";
  message: string;
  exit_status?: string;
  log?: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** An extension is ready; `restarts` counts the times it was started again. */
export interface ExtReady {
  type: "ext_ready";
  extension: string;
  restarts: number;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}

/** An extension's process is gone. */
export interface ExtExit {
  type: "ext_exit";
  extension: string;
  restarts: number;
  exit_status: string;
  /** Rises by 1 within an epoch. */
  seq: number;
  /** The turn that it belongs to, if it belongs to one. */
  turn_id?: string;
}
