// Types of data that the core defines: the settings of a session, in camel
// case, and the turns of its history. tests/node/types.test.mjs compares the
// settings with those that the core knows.

/** Settings that may change while the session is open. */
export interface ChangeableSettings {
  /** Model id or alias; default: the provider's. */
  model?: string;
  /** Origin and path of the provider's API; default: the provider's own. */
  baseUrl?: string;
  /** Assistant turns in the whole session; 0: unlimited. */
  maxTurns?: number;
  /** Tool rounds for one input; default 200. */
  maxToolRoundsPerInput?: number;
  /** Wall time for one input, in ms; 0: unlimited. */
  maxWallMs?: number;
  /** US dollars that the session may cost with its subagents; default: no limit. */
  maxCostUsd?: number;
  /** Time limit of a command whose call names none, in ms. */
  defaultCommandTimeoutMs?: number;
  /** Upper bound of any command's time limit, in ms; default 600,000. */
  maxCommandTimeoutMs?: number;
  /** Time for reading the project's documents at the start, in ms; default 10,000. */
  documentTimeoutMs?: number;
  /** Time for what git says at the start, in ms; default 2,000. */
  gitTimeoutMs?: number;
  /** `low`, `medium`, `high` or what else the provider has. */
  reasoningEffort?: string;
  /** Output tokens per model response. */
  maxTokens?: number;
  /** Characters of a tool's output that the model gets, by tool. */
  toolOutputLimits?: Record<string, number>;
  /** Lines of a tool's output that the model gets, by tool; null: no limit. */
  toolLineLimits?: Record<string, number | null>;
  /** Whether repeated tool calls are noticed; default true. */
  enableLoopDetection?: boolean;
  /** How many of the last tool calls must repeat a pattern; default 10. */
  loopDetectionWindow?: number;
  /** How deep subagents may nest; default 1. */
  maxSubagentDepth?: number;
  /** How many subagents may work at the same time; default 8. */
  maxSubagents?: number;
  /**
   * How providers are reached, by provider; `options` in the core's own names:
   * `{ openai: { options: { organization: "org-1" } } }`. docs/settings.md lists
   * them; headers are none: a `fetch` of your own adds those.
   */
  endpoints?: Record<string, { baseUrl?: string; credential?: string; options?: object }>;
  /** When a text answer counts as a question to the user. */
  awaitingInput?: "heuristic" | "always" | "never";
  /** Bytes of one tool call's output that are kept in full; default 8 MiB. */
  maxCapturedBytes?: number;
  /** Silence on a model stream after which it counts as broken, in ms; default 300,000. */
  streamIdleTimeoutMs?: number;
  /** Time limit for connecting, in ms; `fetch` cannot tell connecting from waiting. */
  connectTimeoutMs?: number;
  /** Retries of a model call that failed before any content arrived. */
  retry?: {
    /** Most retries after the first try; default 2. */
    maxRetries?: number;
    /** First delay in ms; default 1,000. */
    baseDelayMs?: number;
    /** Factor from one delay to the next; default 2. */
    multiplier?: number;
    /** Longest delay in ms; a longer Retry-After fails at once; default 60,000. */
    maxDelayMs?: number;
    /** Whether delays are spread over 50 to 150 %; default true. */
    jitter?: boolean;
  };
  /** Retries of a model stream that broke after content had arrived; default 2. */
  maxStreamRetries?: number;
  /** Tokens that fit the model; default: from the model catalogue, for other models a guess. */
  contextWindow?: number;
  /** When the older part of the conversation is replaced by a summary; default: only by `compact()`. */
  compaction?: {
    /** Part of the context window at which that happens; 1: only by `compact()`; default 0.8. */
    threshold?: number;
    /** Part of the context window that is kept free for the summary; default 0.1. */
    reserve?: number;
    /** Rounds at the end that stay as they are; default 3. */
    keepRounds?: number;
  };
  /** Prices by model id, in place of the catalogue's or where it has none: docs/settings.md. */
  prices?: Record<string, Prices>;
  /** Which calls need approval: docs/approval.md. */
  approval?: {
    tools?: Record<string, "allow" | "ask" | "deny">;
    writePaths?: string[];
    commands?: string[];
  };
  /** Whether cache breakpoints are set where the provider has them; default true. */
  autoCache?: boolean;
  /** Extra options by provider, merged into the request last. */
  providerOptions?: Record<string, Record<string, unknown>>;
}

/** Whose API, and whose tools and prompt. */
export type Provider = "anthropic" | "openai" | "gemini" | "chat";

/** US dollars per million tokens. */
export interface Prices {
  input: number;
  output: number;
  /** Input from the prompt cache; default: as `input`. */
  cacheRead?: number;
  /** Input into the prompt cache; default: as `input`. */
  cacheWrite?: number;
  /** What a prompt of more than `aboveTokens` tokens changes. */
  longPrompt?: { aboveTokens: number; inputFactor: number; outputFactor: number };
}

/** A profile; what is left out is as in the built-in one of the same id, else as in that of `wire`. */
export interface ProfileSettings {
  /** Whose format requests and answers have; may be left out for a built-in profile. */
  wire?: Provider;
  /** What people call the provider; a new profile is called by its id where this is left out. */
  displayName?: string;
  /** Model used when the session names none. */
  defaultModel?: string;
  /** Tokens that fit its models. */
  contextWindow?: number;
  /** Names of the project documents that go into the system prompt. */
  documents?: string[];
  /** By layer of the system prompt: a text in its place, or null to leave it out. */
  prompt?: Partial<Record<"base" | "environment" | "git" | "tools" | "documents" | "user", string | null>>;
  /** Declarations in place of the built-in ones. */
  toolDeclarations?: object[] | string;
  /** Time limit of a command whose call names none, in ms. */
  commandTimeoutMs?: number;
  /** Characters of a tool's output that the model gets, by tool. */
  toolOutputLimits?: Record<string, number>;
  /** Lines of a tool's output that the model gets, by tool; null: no limit. */
  toolLineLimits?: Record<string, number | null>;
  /** Whether one answer may hold several tool calls, for models that the catalogue does not know. */
  parallelToolCalls?: boolean;
  /** Whether models that the catalogue does not know reason. */
  reasoning?: boolean;
  /** Options by adapter, over those of the built-in profile. */
  providerOptions?: Record<string, Record<string, unknown>>;
}

/** Settings of a session. */
export interface SessionSettings extends ChangeableSettings {
  /**
   * Default `anthropic`; `chat` is everything that copies the chat completions of the OpenAI API;
   * other names are those of `profiles`.
   */
  provider?: Provider | (string & {});
  /** Profiles that you define, or change where they are built in, by id: docs/toolsets.md. */
  profiles?: Record<string, ProfileSettings>;
  /** Name under which the core asks for the key; default: the provider's name. */
  credential?: string;
  /** Text that replaces the profile's base instructions. */
  baseInstructions?: string;
  /** The user's own instructions; last part of the system prompt. */
  instructions?: string;
  /**
   * JSON Schema of the final answer: `prompt()` gives its value as `output`, `PROCESSING_END` too. The
   * model is asked again at most twice; then the run fails with `no_object_generated`.
   */
  outputSchema?: object;
  /**
   * What the host knows of the project around a working directory that holds a
   * part of it: documents above it, and git's facts (`changes`: changed and
   * untracked files).
   */
  project?: {
    documents?: { path: string; text: string }[];
    git?: { branch?: string; changes?: [number, number]; commits?: string[]; missing?: string };
  };
  /** Names of the tools in requests; default `spec`. */
  toolset?: "spec" | "native";
  /** Declarations that replace the profile's: docs/toolsets.md. */
  toolDeclarations?: object[] | string;
  /** Hosts that `web_fetch` may ask; the tool is not there when there are none. */
  webFetchHosts?: string[];
  /** Whether `apply_patch` takes freeform text where the provider has freeform tools. */
  freeformTools?: boolean;
  /** Whether the model may leave commands running, such as a server; default `false`. */
  backgroundCommands?: boolean;
  /** The session runs in a web page: which providers want to know; default: whether it does. */
  browser?: boolean;
}

/** Tokens, as the provider counts them. */
export interface Usage {
  input_tokens: number;
  output_tokens: number;
  total_tokens: number;
  reasoning_tokens?: number;
  cache_read_tokens?: number;
  cache_write_tokens?: number;
  /** Tokens of the prompt that `input_tokens` leaves out. */
  uncounted_input_tokens?: number;
  /** The provider's own usage object. */
  raw?: unknown;
}

/** A call of the model's. */
export interface ToolCall {
  id: string;
  name: string;
  /** JSON text, or freeform text of a custom tool. */
  arguments: string;
  custom: boolean;
}

/** What the model got for a call. */
export interface ToolResult {
  tool_call_id: string;
  tool_name: string;
  content: string;
  /** Images and documents beside the text. */
  media?: Media[];
  is_error: boolean;
}

/** A subagent. */
export interface Agent {
  /** Its id, the `agent_id` of its events. */
  id: string;
  /** Session or subagent that started it. */
  parentId: string;
  /** What it was started for. */
  task: string;
  /** What it is doing. */
  state: "IDLE" | "PROCESSING" | "AWAITING_INPUT" | "CLOSED";
  /** What has become of its work so far. */
  status: "running" | "completed" | "failed";
  /** 1 for a subagent of the session, 2 for one of that, and so on. */
  depth: number;
  /** Answers of its model so far. */
  turns: number;
}

/** An image or a document in the history. */
export interface Media {
  /** The file, as base64. */
  source: { data: string };
  media_type: string;
  detail?: string;
  file_name?: string;
}

/** What a user said: a text, or parts in order. */
export type Content = string | ({ type: "text"; text: string } | ({ type: "image" | "document" } & Media))[];

/** One turn of the history, told apart by `turn`. */
export type Turn =
  | { turn: "user"; content: Content; timestamp_ms: number }
  | {
      turn: "assistant";
      content: string;
      tool_calls: ToolCall[];
      reasoning: string | null;
      usage: Usage;
      response_id: string | null;
      timestamp_ms: number;
    }
  | { turn: "tool_results"; results: ToolResult[]; timestamp_ms: number }
  | { turn: "system"; content: string; timestamp_ms: number }
  | { turn: "steering"; content: Content; timestamp_ms: number }
  | { turn: "compaction"; summary: string; kept: number; timestamp_ms: number };

/** A message of a conversation without a session. */
export interface ModelMessage {
  role: "system" | "developer" | "user" | "assistant" | "tool";
  /** A text, or parts in order. */
  content: string | ModelPart[];
  /** The provider's own items, in the `message` of an answer; leave them there. */
  replay?: unknown;
}

/** A part of a message. */
export type ModelPart =
  | { type: "text"; text: string }
  | ({ type: "image" | "audio" | "document" } & Media)
  | ({ type: "tool_call" } & ToolCall)
  | ({ type: "tool_result" } & ToolResult)
  | { type: "thinking"; text: string; signature?: string }
  | { type: "redacted_thinking"; data: string }
  | { type: "other"; kind: string; value: unknown };

/** An answer without a session. */
export interface ModelResponse {
  /** The provider's id of the answer. */
  id: string;
  /** Model that answered, as the provider names it. */
  model: string;
  provider: string;
  /** The answer; goes into the `messages` of the next request as it is. */
  message: ModelMessage & { content: ModelPart[] };
  /** All of its text. */
  text: string;
  toolCalls: ToolCall[];
  /** Why it ended; `raw` as the provider calls it. */
  finishReason: { reason: string; raw: string };
  usage: Usage;
  /** What was left out or changed on the way. */
  warnings?: { code: string; message: string }[];
  /** State of the rate limits, where the provider tells it. */
  rateLimit?: object;
}

/** What arrives of an answer. A `segment` is a number, unique within the answer. */
export type ModelEvent =
  | { type: "start"; id: string; model: string }
  | { type: "text_start"; segment: number }
  | { type: "text_delta"; segment: number; text: string }
  | { type: "text_end"; segment: number; text: string }
  | { type: "reasoning_start"; segment: number }
  | { type: "reasoning_delta"; segment: number; text: string }
  | { type: "reasoning_end"; segment: number; text: string }
  | { type: "tool_call_start"; segment: number; id: string; name: string }
  | { type: "tool_call_delta"; segment: number; arguments: string }
  | { type: "tool_call_end"; segment: number; call: ToolCall }
  | { type: "provider_event"; raw: unknown }
  | { type: "finish"; response: ModelResponse };
