//! The options of `agentchat chat`. What they mean together is checked in [`super::request`].

#![expect(clippy::doc_markdown, reason = "these comments are the help, which has no Markdown")]

use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand};

/// Shown below the options.
pub(crate) const EXAMPLES: &str = "\
Examples:
  agentchat chat \"Why is the sky blue?\"
  git diff | agentchat chat \"Review this:\" -
  agentchat chat --input photo.png --stream \"What is on this picture?\"
  agentchat chat \"What happened in AI today?\" --tools web_search --max-tool-calls 3
  agentchat chat \"Weather in Oslo?\" --tools-file tools.json --tool-choice required | jq '.function_calls'
  agentchat chat \"Weather in Oslo?\" --tools-file tools.json --run-tools --stream
  agentchat chat --text-schema person.json --text-strict \"Invent a person\" | jq -r .content
  agentchat chat --previous-response-id resp_123 \"And tomorrow?\"
  agentchat chat --profile ollama --model qwen3 \"Hello\"

A prompt that is the name of a command (get, list, …) goes after --, or use agentchat +chat.
The result goes to standard output, everything else to standard error.
Exit codes: 0 done, 1 failed or cancelled, 2 wrong usage, 5 refused by the endpoint.";

/// A function that a program runs.
pub(crate) const TOOLS_HELP: &str = "\
JSON file with an array of tool objects, taken after those of --tools. A function needs \"name\"; \"description\", \
\"parameters\" (JSON Schema) and \"strict\" are optional, and \"run\": [\"program\", \"argument\"] is for --run-tools";

/// Options that name the endpoint.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Endpoint")]
pub(crate) struct EndpointArgs {
    /// Endpoint by name: one of the configuration file, or openai, ark, ollama, llama.cpp, lmstudio, vllm
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Key, instead of the profile's. Others on this machine can see it here: prefer the environment
    #[arg(long, value_name = "KEY")]
    pub(crate) api_key: Option<String>,
    /// Base URL, instead of the profile's. The profile's key is only sent to the profile's own server
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Tell on standard error what is sent and when, without keys
    #[arg(long)]
    pub(crate) debug: bool,
}

/// Options of a request.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ChatArgs {
    /// What to ask; - stands for standard input, which is also read if there is no prompt
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,
    /// Model, instead of the profile's
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// File (path or @path) or URL that goes along; may be repeated. What it is follows from its extension
    #[arg(long, value_name = "PATH|URL", action = ArgAction::Append)]
    pub(crate) input: Vec<String>,
    /// System text
    #[arg(long, value_name = "TEXT")]
    pub(crate) instructions: Option<String>,
    /// Randomness, 0 to 2
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub(crate) temperature: Option<f64>,
    /// Share of the likeliest tokens, 0 to 1
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub(crate) top_p: Option<f64>,
    /// Most tokens of the answer, reasoning included
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pub(crate) max_output_tokens: Option<i64>,
    /// none, minimal, low, medium, high, xhigh or max
    #[arg(long, value_name = "EFFORT")]
    pub(crate) reasoning_effort: Option<String>,
    /// auto, enabled or disabled (Ark)
    #[arg(long, value_name = "MODE")]
    pub(crate) thinking: Option<String>,
    /// enabled or disabled (Ark)
    #[arg(long, value_name = "MODE")]
    pub(crate) caching: Option<String>,
    /// Cache this request as the beginning of later ones (Ark)
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) cache_prefix: Option<bool>,
    /// Keep the response, for --previous-response-id and chat get. The default is what the endpoint does, mostly true
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) store: Option<bool>,
    /// When the kept response is to be forgotten, in seconds since 1970
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub(crate) expire_at: Option<i64>,
    /// Continue after this response
    #[arg(long, value_name = "ID")]
    pub(crate) previous_response_id: Option<String>,
    /// What a function of the response that is continued gave: CALL_ID=TEXT, or CALL_ID=@FILE; may be repeated
    #[arg(long, value_name = "CALL_ID=OUTPUT", action = ArgAction::Append)]
    pub(crate) tool_output: Vec<String>,
    #[command(flatten)]
    pub(crate) tools: ToolArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,
}

/// Options about tools.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Tools")]
pub(crate) struct ToolArgs {
    /// Tool without options: web_search; may be repeated
    #[arg(long = "tools", value_name = "TYPE", action = ArgAction::Append)]
    pub(crate) types: Vec<String>,
    #[arg(long = "tools-file", value_name = "PATH", help = TOOLS_HELP)]
    pub(crate) file: Option<PathBuf>,
    /// auto, required, none, or a function: function:NAME or {"type":"function","name":"NAME"}
    #[arg(long = "tool-choice", value_name = "CHOICE")]
    pub(crate) choice: Option<String>,
    /// Most calls of the endpoint's own tools; not with functions
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pub(crate) max_tool_calls: Option<i64>,
    /// Run the functions that have "run" and go on with what they give, until the model is done. Asks before each
    #[arg(long)]
    pub(crate) run_tools: bool,
    /// With --run-tools: do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// With --run-tools: most requests
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    pub(crate) max_turns: u32,
}

/// Options about the form of the answer.
#[expect(clippy::struct_excessive_bools, reason = "they are switches of a command line")]
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// text, json_object or json_schema
    #[arg(long, value_name = "FORMAT")]
    pub(crate) text_format: Option<String>,
    /// JSON Schema of the answer
    #[arg(long, value_name = "PATH")]
    pub(crate) text_schema: Option<PathBuf>,
    /// What the model is told the schema's name is
    #[arg(long, value_name = "NAME")]
    pub(crate) text_schema_name: Option<String>,
    /// Have the answer fit the schema, and fail if it does not
    #[arg(long)]
    pub(crate) text_strict: bool,
    /// Print text as it comes instead of one JSON object
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) stream: Option<bool>,
    /// With --stream: print the endpoint's events as JSON lines
    #[arg(long)]
    pub(crate) include_events: bool,
    /// Do not tell on standard error that it takes long
    #[arg(long)]
    pub(crate) no_progress: bool,
    /// Print what would be sent, without key, and send nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Form of the result; there is only json
    #[arg(long, value_name = "FORMAT", hide = true)]
    pub(crate) format: Option<String>,
}

/// What there is beside asking.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum StoredCommand {
    /// Show a kept response
    Get {
        /// The response's id
        id: Option<String>,
        /// More of it: image_url, audio_url or encrypted_content; may be repeated
        #[arg(long, action = ArgAction::Append)]
        include: Vec<String>,
        #[command(flatten)]
        endpoint: EndpointArgs,
    },
    /// Show what a kept response was given, the conversation before it included
    ListInputItems {
        /// The response's id
        id: Option<String>,
        /// Begin after this item
        #[arg(long, value_name = "ID")]
        after: Option<String>,
        /// End before this item
        #[arg(long, value_name = "ID")]
        before: Option<String>,
        /// How many, 1 to 100
        #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
        limit: Option<i64>,
        /// asc or desc
        #[arg(long)]
        order: Option<String>,
        /// More of them: image_url, audio_url or encrypted_content; may be repeated
        #[arg(long, action = ArgAction::Append)]
        include: Vec<String>,
        #[command(flatten)]
        endpoint: EndpointArgs,
    },
    /// Forget a kept response
    Delete {
        /// The response's id
        id: Option<String>,
        #[command(flatten)]
        endpoint: EndpointArgs,
    },
    /// List the responses of this machine, newest first
    List {
        /// How many, 1 to 100
        #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
        limit: Option<i64>,
        /// Only those before this one
        #[arg(long, value_name = "ID")]
        before: Option<String>,
    },
}
