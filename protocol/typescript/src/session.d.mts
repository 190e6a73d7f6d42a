// One line of a session file: the header first, then rows. Rows of unknown types are kept and skipped.
// Made of session.schema.json by scripts/gen_protocol.py; not to be edited.

/** Any line but the first. */
export type Row =
  | BranchRow
  | HeadRow
  | MessageRow
  | StateRow
  | CompactionRow
  | UsageRow
  | SettingsRow
  | TitleRow
  | VerdictRow;

/** The first line of a session file. `started` is RFC 3339; `timezone` an IANA name or offset. */
export interface Header {
  type: "session";
  format: string;
  version: number;
  id: string;
  cwd: string;
  started: string;
  zutd: string;
  timezone: string;
}

/** Everything below this row belongs to branch `id` (a uuid). */
export interface BranchRow {
  type: "branch";
  n: number;
  parent: number | null;
  time: string;
  id: string;
  fork_point: number;
  parent_id?: string;
  title?: string;
}

/** From here on `branch` (a branch id) is the active one. */
export interface HeadRow {
  type: "head";
  n: number;
  parent: number | null;
  time: string;
  branch: string;
  messages?: number;
  branches?: number;
  title?: string;
}

/** One message of the conversation. */
export interface MessageRow {
  type: "message";
  n: number;
  parent: number | null;
  time: string;
  message: Message;
  continues?: boolean;
}

/** One entry of a conversation. */
export interface Message {
  role: "user" | "assistant" | "tool";
  content: (Text | Image | Thinking | ToolCall | ToolResult)[];
  time: string;
  provider?: string;
  model?: string;
  stop?: string;
  usage?: Usage | null;
  partial?: boolean;
  activated_tools?: string[];
}

/** Plain text. */
export interface Text {
  type: "text";
  text: string;
}

/** A picture; `data` is standard base64 with padding. */
export interface Image {
  type: "image";
  mime_type: string;
  data: string;
}

/** A model's reasoning. */
export interface Thinking {
  type: "thinking";
  text: string;
  signature?: string;
  redacted?: string;
  field?: string;
}

/** A call that the model asked for. */
export interface ToolCall {
  type: "tool_call";
  id: string;
  name: string;
  args: unknown;
  invalid?: string;
}

/** The one result of one call. `details` (opaque) are for people, never for the model. */
export interface ToolResult {
  type: "tool_result";
  call_id: string;
  content: (Text | Image)[];
  is_error: boolean;
  name?: string;
  extension?: string;
  details?: unknown;
}

/** Tokens and money of one or more model calls. `input` excludes cached tokens. */
export interface Usage {
  input: number;
  output: number;
  reasoning: number | null;
  cache_read: number;
  cache_write: number;
  cost_usd: number;
}

/** An extension's snapshot (opaque JSON; null clears it). */
export interface StateRow {
  type: "extension_state";
  n: number;
  parent: number | null;
  time: string;
  extension: string;
  state: unknown;
}

/** From here the context is `summary` and then the rows from `first_kept` on. */
export interface CompactionRow {
  type: "compaction";
  n: number;
  parent: number | null;
  time: string;
  summary: string;
  first_kept: number;
  tokens_before: number;
  tokens_after: number;
  reason: string;
  activated_tools?: string[];
}

/** A checkpoint at the end of a turn: that turn's usage and the session's total. */
export interface UsageRow {
  type: "usage";
  n: number;
  parent: number | null;
  time: string;
  turn: Usage;
  session: Usage;
  messages?: number;
  branches?: number;
  title?: string;
}

/** A change of model or reasoning level in the middle; empty means unchanged. */
export interface SettingsRow {
  type: "settings";
  n: number;
  parent: number | null;
  time: string;
  provider?: string;
  model?: string;
  reasoning?: string;
}

/** The session's title; the last one on the path wins. */
export interface TitleRow {
  type: "title";
  n: number;
  parent: number | null;
  time: string;
  title: string;
}

/** What an interceptor decided. Digests are SHA-256 (hex) of canonical JSON arguments. */
export interface VerdictRow {
  type: "verdict";
  n: number;
  parent: number | null;
  time: string;
  extension: string;
  event: string;
  decision: string;
  latency_ms: number;
  tool_id?: string;
  timed_out?: boolean;
  args_digest_before?: string;
  args_digest_after?: string;
}
