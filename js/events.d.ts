// Made from docs/events.schema.json (xtask/src/events.rs); not edited by hand.
// Consumers ignore kinds and fields that they do not know.

/** What every event has. */
export interface EventBase {
  /** 1, 2, 3, … on the session's stream. */
  seq: number;
  /** When, RFC 3339 in UTC. */
  timestamp: string;
  /** Session that the host opened. */
  session_id: string;
  /** Id of the subagent, for events of a subagent. */
  agent_id?: string | null;
  /** Session or subagent that spawned the subagent, for events of a subagent. */
  parent_id?: string | null;
}

/** The session exists and accepts input. First event of a session. */
export interface SessionStartEvent extends EventBase {
  kind: "SESSION_START";
  data: {
    /** Provider in use, such as `anthropic`. */
    provider: string;
    /** Model in use. */
    model: string;
    /** Directory that relative paths start at. */
    working_directory: string;
    /** Platform of the environment. */
    platform: string;
  };
}

/** The session is closed. Last event of a session. */
export interface SessionEndEvent extends EventBase {
  kind: "SESSION_END";
  data: {
    /** Always `CLOSED`. */
    state: SessionState;
    /** Why. */
    reason: CloseReason;
    /** What the session has used; absent where the core failed, which alone knew it. */
    totals?: Totals | null;
    /** The final answer of the last input, as its `PROCESSING_END` had it. */
    output?: unknown;
  };
}

/** The session moved to another state (spec 2.3). */
export interface StateChangedEvent extends EventBase {
  kind: "STATE_CHANGED";
  data: {
    /** State before. */
    from: SessionState;
    /** State now. */
    to: SessionState;
  };
}

/** An input is about to be processed; also for follow-ups and answers. */
export interface UserInputEvent extends EventBase {
  kind: "USER_INPUT";
  data: {
    /** The text of the input. */
    content: string;
    /** Images and documents that came with it. */
    attachments?: (Attachment)[];
  };
}

/** An input is done. The session is ready for the next one unless `SESSION_END` follows. */
export interface ProcessingEndEvent extends EventBase {
  kind: "PROCESSING_END";
  data: {
    /** Why the loop stopped. */
    reason: EndReason;
    /** Tool rounds used by this input. */
    rounds: number;
    /** Assistant turns of the session so far. */
    turns: number;
    /** What the session has used so far. */
    totals: Totals;
    /** The final answer, where the session has an `output_schema` that it follows. */
    output?: unknown;
  };
}

/** The model began to answer. */
export interface AssistantTextStartEvent extends EventBase {
  kind: "ASSISTANT_TEXT_START";
  data: Record<string, never>;
}

/** A piece of the answer. */
export interface AssistantTextDeltaEvent extends EventBase {
  kind: "ASSISTANT_TEXT_DELTA";
  data: {
    /** The piece. */
    text: string;
  };
}

/** A piece of the model's reasoning. */
export interface ReasoningDeltaEvent extends EventBase {
  kind: "REASONING_DELTA";
  data: {
    /** The piece. */
    text: string;
  };
}

/** The answer is complete. Emitted once per model response, also when it holds no text but only tool calls. */
export interface AssistantTextEndEvent extends EventBase {
  kind: "ASSISTANT_TEXT_END";
  data: {
    /** All text of the answer. */
    text: string;
    /** All reasoning text, if any. */
    reasoning?: string | null;
    /** The provider's id of the response. */
    response_id?: string | null;
    /** Why the model stopped: `stop`, `length`, `tool_calls`, `content_filter`, `error`, `other`. */
    finish_reason: string;
  };
}

/** Tokens, price and time of one model response. An attempt that broke off has none. */
export interface UsageEvent extends EventBase {
  kind: "USAGE";
  data: {
    /** What the response was for; absent: an answer of the conversation. */
    purpose?: UsagePurpose | null;
    /** Model that was asked. */
    model: string;
    /** Every token that the model read, cached ones included. */
    prompt_tokens: number;
    /** Input tokens as the provider counts them: Anthropic leaves cached tokens out, the others include them. */
    input_tokens: number;
    /** Output tokens, reasoning included. */
    output_tokens: number;
    /** Part of the output that was reasoning. */
    reasoning_tokens?: number | null;
    /** Input tokens read from the provider's cache. */
    cache_read_tokens?: number | null;
    /** Input tokens written to the provider's cache. */
    cache_write_tokens?: number | null;
    /** Price in US dollars; absent where the model's price is not known. */
    cost_usd?: number | null;
    /** Time from sending the request to the end of the stream, in ms. */
    model_ms: number;
    /** 1 for the first attempt, 2 for the first retry, and so on. */
    attempt: number;
    /** Token ids and log probabilities, where `provider_options` ask for them and the provider gives them. */
    sampled?: Sampled | null;
  };
}

/** A tool is about to run. */
export interface ToolCallStartEvent extends EventBase {
  kind: "TOOL_CALL_START";
  data: {
    /** Tool. */
    tool_name: string;
    /** Id of the call. */
    call_id: string;
    /** Arguments: the parsed object, or the raw text if it is not JSON. */
    arguments: unknown;
  };
}

/** Output of a running tool, as it arrives; together all of it. */
export interface ToolCallOutputDeltaEvent extends EventBase {
  kind: "TOOL_CALL_OUTPUT_DELTA";
  data: {
    /** Id of the call. */
    call_id: string;
    /** `stdout`, `stderr`, or absent for progress of a host tool. */
    stream?: string | null;
    /** The piece; invalid UTF-8 becomes U+FFFD. */
    text: string;
  };
}

/** A tool has finished. */
export interface ToolCallEndEvent extends EventBase {
  kind: "TOOL_CALL_END";
  data: {
    /** Tool. */
    tool_name: string;
    /** Id of the call. */
    call_id: string;
    /** Full, untruncated output (bounded by `max_captured_bytes`). */
    output?: string | null;
    /** Why it failed, when it could not produce output. */
    error?: string | null;
    /** Images and documents that the model got beside the text. */
    attachments?: (Attachment)[];
    /** Whether the model gets it as an error. */
    is_error: boolean;
    /** Why it was not allowed to run, if it was not. */
    refusal?: Refusal | null;
    /** Bytes of output that there were. */
    output_bytes: number;
    /** Whether `output` holds all of them. */
    output_complete: boolean;
    /** Exit code, of commands. */
    exit_code?: number | null;
    /** Whether the time limit ended it, of commands. */
    timed_out?: boolean | null;
    /** Time it took in ms. */
    duration_ms: number;
  };
}

/** The host is asked whether a tool may run. */
export interface ApprovalRequestedEvent extends EventBase {
  kind: "APPROVAL_REQUESTED";
  data: {
    /** Tool. */
    tool_name: string;
    /** Id of the call. */
    call_id: string;
    /** Validated arguments, under the names of the specification. */
    arguments: unknown;
    /** Why the policy asks. */
    reason: string;
  };
}

/** A steering message waits for the end of the tool round. */
export interface SteeringQueuedEvent extends EventBase {
  kind: "STEERING_QUEUED";
  data: {
    /** Number of the message within the session, from 1. */
    id: number;
    /** The text of the message. */
    content: string;
    /** Images and documents that came with it. */
    attachments?: (Attachment)[];
  };
}

/** A steering turn was added to the history. */
export interface SteeringInjectedEvent extends EventBase {
  kind: "STEERING_INJECTED";
  data: {
    /** Number of the message within the session; absent where the session wrote it. */
    id?: number | null;
    /** Who wrote it. */
    source: SteeringSource;
    /** The text of the message. */
    content: string;
    /** Images and documents that came with it. */
    attachments?: (Attachment)[];
  };
}

/** A steering message will never be delivered: the session closed. */
export interface SteeringDroppedEvent extends EventBase {
  kind: "STEERING_DROPPED";
  data: {
    /** Number of the message within the session. */
    id: number;
    /** The text of the message. */
    content: string;
    /** Images and documents that came with it. */
    attachments?: (Attachment)[];
  };
}

/** A follow-up will never be processed: the session closed. */
export interface FollowUpDroppedEvent extends EventBase {
  kind: "FOLLOW_UP_DROPPED";
  data: {
    /** The text of the follow-up. */
    content: string;
    /** Images and documents that came with it. */
    attachments?: (Attachment)[];
  };
}

/** A limit ended the input. */
export interface TurnLimitEvent extends EventBase {
  kind: "TURN_LIMIT";
  data: {
    /** Which limit. */
    limit: LimitKind;
    /** Its value. */
    value: number;
    /** Tool rounds used by this input. */
    round: number;
    /** Assistant turns of the session so far. */
    total_turns: number;
  };
}

/** The model is about to summarise the older part of the conversation. */
export interface CompactionStartEvent extends EventBase {
  kind: "COMPACTION_START";
  data: {
    /** Why. */
    reason: CompactionReason;
    /** Tokens of the conversation, an estimate where the provider has not counted. */
    before_tokens: number;
    /** Tokens that fit the model; 0: not known. */
    context_window: number;
  };
}

/** From here on the model reads a summary in place of the older part of the conversation; with `error`, everything is as it was. What went stays in the history. */
export interface CompactionEndEvent extends EventBase {
  kind: "COMPACTION_END";
  data: {
    /** Tokens before. */
    before_tokens: number;
    /** Tokens now, an estimate. */
    after_tokens: number;
    /** How many of the last turns stay as they are. */
    kept_turns: number;
    /** The summary. */
    summary?: string | null;
    /** Why there is none. */
    error?: string | null;
  };
}

/** The last tool calls repeat a pattern; the model gets a warning. */
export interface LoopDetectionEvent extends EventBase {
  kind: "LOOP_DETECTION";
  data: {
    /** The warning. */
    message: string;
    /** Length of the pattern: 1, 2 or 3. */
    pattern_length: number;
  };
}

/** Something that a person should know and that stops nothing. */
export interface WarningEvent extends EventBase {
  kind: "WARNING";
  data: {
    /** Stable name, such as `context_usage`. */
    code: string;
    /** One sentence. */
    message: string;
  };
}

/** A model call failed and will be made again. */
export interface RetryEvent extends EventBase {
  kind: "RETRY";
  data: {
    /** Number of the coming attempt, from 2. */
    attempt: number;
    /** Wait before it, in ms. */
    delay_ms: number;
    /** Why the last attempt failed. */
    message: string;
    /** The answer shown so far is void; clear it. */
    discard_partial: boolean;
  };
}

/** A model call failed for good, or the session cannot go on. */
export interface ErrorEvent extends EventBase {
  kind: "ERROR";
  data: {
    /** Stable name, such as `authentication`. */
    code: string;
    /** One sentence that names the thing and the way out. */
    message: string;
    /** HTTP status, if there was one. */
    status?: number | null;
    /** Whether the same request may succeed later. */
    retryable: boolean;
  };
}

/** One event of a session, told apart by `kind`. */
export type SessionEvent =
  | SessionStartEvent
  | SessionEndEvent
  | StateChangedEvent
  | UserInputEvent
  | ProcessingEndEvent
  | AssistantTextStartEvent
  | AssistantTextDeltaEvent
  | ReasoningDeltaEvent
  | AssistantTextEndEvent
  | UsageEvent
  | ToolCallStartEvent
  | ToolCallOutputDeltaEvent
  | ToolCallEndEvent
  | ApprovalRequestedEvent
  | SteeringQueuedEvent
  | SteeringInjectedEvent
  | SteeringDroppedEvent
  | FollowUpDroppedEvent
  | TurnLimitEvent
  | CompactionStartEvent
  | CompactionEndEvent
  | LoopDetectionEvent
  | WarningEvent
  | RetryEvent
  | ErrorEvent;

/** The kinds of events. */
export type EventKind = SessionEvent["kind"];

/** What the events of one kind bear. */
export type EventData<K extends EventKind> = Extract<SessionEvent, { kind: K }>["data"];

/** State of a session (spec 2.3). */
export type SessionState = "IDLE" | "PROCESSING" | "AWAITING_INPUT" | "CLOSED";

/** Why a session closed. */
export type CloseReason = "closed" | "aborted" | "error";

/** What a session, or a subagent, has used since it was opened, its own subagents included: the sum of its `USAGE` events and theirs. */
export type Totals = {
  /** Model responses. */
  responses: number;
  /** Every token that models read, cached ones included. */
  prompt_tokens: number;
  /** Output tokens, reasoning included. */
  output_tokens: number;
  /** Part of the output that was reasoning, as far as providers tell. */
  reasoning_tokens: number;
  /** Part of the prompts that came from the providers' caches. */
  cache_read_tokens: number;
  /** Part of the prompts that was written to the providers' caches. */
  cache_write_tokens: number;
  /** Price in US dollars; absent where that of any response is not known. */
  cost_usd?: number | null;
};

/** An image or a document that came with a text. Its bytes are in the history, not in the event. */
export type Attachment = {
  /** What it is. */
  kind: AttachmentKind;
  /** Media type, such as `image/png`, `application/pdf` or `text/plain`. */
  media_type: string;
  /** Size in bytes. */
  bytes: number;
  /** Name of the file, if it is known. */
  name?: string | null;
};

/** Kinds of [`Attachment`]. */
export type AttachmentKind = "image" | "document";

/** Why an input ended. */
export type EndReason = "completed" | "awaiting_input" | "round_limit" | "turn_limit" | "time_limit" | "cost_limit" | "interrupted" | "aborted" | "error";

/** What a model's response was for, where it is no answer of the conversation. */
export type UsagePurpose = "compaction";

/** The tokens of an answer. */
export type Sampled = {
  /** Ids of the tokens of the prompt. */
  prompt_token_ids?: (number)[];
  /** Ids of the tokens of the answer. */
  token_ids?: (number)[];
  /** Log probability of each of them. */
  logprobs?: (number)[];
};

/** Why a tool call was not allowed to run (`docs/approval.md`). */
export type Refusal = "denied_by_policy" | "not_approved" | "no_approver";

/** Who wrote a steering turn. */
export type SteeringSource = "host" | "repetition" | "call_cut_off" | "output_schema";

/** Which limit was reached. */
export type LimitKind = "tool_rounds" | "turns" | "wall_time" | "cost";

/** Why a conversation is compacted. */
export type CompactionReason = "threshold" | "call" | "context_length";
