//! `agentchat chat`: asking a model from the command line, and what is kept of it.
//!
//! Standard output has the result and nothing else. Everything that can be told to be wrong before anything is sent is.
//!
//! | module | is |
//! |---|---|
//! | `args`, `failure` | the options; failures as envelope and exit code |
//! | `prompt`, `files`, `tools`, `request` | from options to a request |
//! | `turn`, `runner`, `interrupt` | sending it, running functions, Ctrl-C |
//! | `print`, `output`, `preview` | results |
//! | `kept`, `stored` | the store here; `get`, `list-input-items`, `delete`, `list` |
//! | `schema` | whether an answer fits a JSON Schema |
//! | `profiles` | `agentchat profile` |

pub(crate) mod args;
mod debug;
mod failure;
mod files;
mod interrupt;
mod kept;
mod output;
mod preview;
mod print;
pub(crate) mod profiles;
mod prompt;
mod request;
mod runner;
mod schema;
mod stored;
mod tools;
mod turn;

use std::path::Path;
use std::process::ExitCode;

use serde_json::Value;

use self::args::{ChatArgs, EndpointArgs, StoredCommand, ToolArgs};
use self::failure::Failure;
use self::interrupt::Interrupt;
use self::output::Output;
use self::runner::Runner;
use self::turn::{Keeper, Mode, Setting, Turns};
use crate::profiles::{Choice, Chosen, Config, choose as choose_profile, config_path};
use crate::responses::{Client, Endpoint, Error, Key, item, part};

pub(crate) use self::kept::open as open_store;
pub(crate) use self::runner::execute;
pub(crate) use self::tools::Tools;

/// The tools of a file in the form of `--tools-file`.
///
/// # Errors
/// What is wrong with the file, in a sentence.
pub(crate) fn tools_of(path: &Path) -> Result<Tools, String> {
    let args = ToolArgs { file: Some(path.to_owned()), ..ToolArgs::default() };
    tools::check(&args, &[]).map_err(|failure| failure.message)
}

/// Asks.
pub(crate) async fn ask(args: ChatArgs) -> ExitCode {
    finish(try_ask(args).await)
}

/// Carries out what there is beside asking.
pub(crate) async fn stored(command: StoredCommand) -> ExitCode {
    let interrupt = Interrupt::listen();
    let result = tokio::select! {
        result = stored::run(command) => result,
        () = interrupt.wait() => Err(Failure::cancelled()),
    };
    finish(match result {
        Ok(value) => print_json(&value).await,
        Err(failure) => Err(failure),
    })
}

/// The command line was not understood.
pub(crate) fn misused(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let message = lines.next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    let rest: Vec<&str> = lines.collect();
    finish(Err(Failure::validation(message).hint(rest.join("; "))))
}

fn finish(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.is_silent() {
                output::say(&failure.envelope().to_string());
            }
            failure.exit_code()
        }
    }
}

async fn print_json(value: &Value) -> Result<(), Failure> {
    let mut out = Output::new();
    out.push(&serde_json::to_string_pretty(value).map_err(|error| Failure::general(error.to_string()))?);
    out.push("\n");
    out.flush().await.map_err(|error| Failure::of_output(&error))
}

fn to_value(value: &impl serde::Serialize) -> Result<Value, Failure> {
    serde_json::to_value(value).map_err(|error| Failure::general(error.to_string()))
}

/// The endpoint that the options name. `offline`: without its key, and without looking for servers.
async fn choose(args: &EndpointArgs, offline: bool) -> Result<Chosen, Failure> {
    let config = Config::read(&config_path()?)?;
    let key = match &args.api_key {
        Some(text) => Some(Key::new(text).ok_or_else(|| Failure::validation("--api-key is empty"))?),
        None => None,
    };
    let choice = Choice { profile: args.profile.clone(), base_url: args.base_url.clone(), key, offline };
    Ok(choose_profile(&config, &choice).await?)
}

fn client(endpoint: Endpoint) -> Result<Client, Failure> {
    let sends_key_openly = endpoint.key.is_some() && endpoint.base_url.is_plain() && !endpoint.base_url.is_loopback();
    if sends_key_openly {
        output::warn(&format!("the key goes to {} without encryption", endpoint.base_url.host()));
    }
    let client = Client::new(endpoint).map_err(|error| match error {
        Error::Setup(message) => Failure::validation(message),
        other => Failure::of_request("client", &other),
    })?;
    Ok(client.with_retry_notice(|retry| {
        let error = &retry.error;
        let status = error.status.map(|status| status.to_string()).unwrap_or_default();
        output::warn(&format!("{status} {}: trying again in {:.1} s", error.message, retry.wait.as_secs_f32()));
    }))
}

async fn try_ask(args: ChatArgs) -> Result<(), Failure> {
    if args.endpoint.debug {
        debug::to_stderr();
    }
    let interrupt = Interrupt::listen();
    let checked = request::check(&args)?;
    // What is wrong with the tools' file is told before anything else is needed.
    let types_of_file = tools::check(&args.tools, &[]);
    let has_input = !args.input.is_empty() || !args.tool_output.is_empty();
    let prompt = tokio::select! {
        prompt = prompt::read(args.prompt.clone(), has_input) => prompt?,
        () = interrupt.wait() => return Err(Failure::cancelled()),
    };
    let dry_run = args.output.dry_run;
    let chosen = match choose(&args.endpoint, dry_run).await {
        Ok(chosen) => chosen,
        // Without an endpoint, the tools that only some have are no matter.
        Err(failure) => return Err(types_of_file.err().unwrap_or(failure)),
    };
    let Chosen { endpoint, profile } = chosen;
    // Fails for a tool that is wrong before the key or the network is needed.
    tools::check(&args.tools, &profile.tools)?;
    let client = client(endpoint)?;
    let model = model(&args, &profile, &client, dry_run).await?;
    let (request, tools, warnings) = checked.for_endpoint(&args, &profile, model)?;
    for warning in &warnings {
        output::warn(warning);
    }

    let capabilities = profile.dialect.capabilities();
    let mut items = checked.outputs.clone();
    let mut parts = Vec::new();
    for input in &checked.inputs {
        let uploader = Some(&client).filter(|_| !dry_run);
        let made = tokio::select! {
            made = files::to_part(input, capabilities, uploader) => made?,
            () = interrupt.wait() => return Err(Failure::cancelled()),
        };
        parts.push(made);
    }
    parts.extend(prompt.map(part::text));
    if !parts.is_empty() {
        items.push(item::user(parts));
    }
    let stream = args.output.stream == Some(true);
    if dry_run {
        let request = crate::responses::Request { input: crate::responses::Input::Items(items), ..request };
        let programs = tools
            .programs
            .iter()
            .filter(|_| args.tools.run_tools)
            .map(|(name, program)| format!("{name}: {}", program.join(" ")));
        return print_json(&preview::preview(&client, &request, stream, programs)).await;
    }
    let runner = if args.tools.run_tools { Some(Runner::new(tools.programs, args.tools.yes)?) } else { None };
    let setting = Setting {
        keeper: Keeper::new(client.endpoint().base_url.to_string(), args.store != Some(false), checked.expire_at),
        client,
        mode: match (stream, args.output.include_events) {
            (false, _) => Mode::Json,
            (true, false) => Mode::Human,
            (true, true) => Mode::Events,
        },
        progress: !args.output.no_progress,
        max_turns: args.tools.max_turns.max(1),
        runner,
        schema: checked.schema,
        interrupt,
    };
    Turns::new(setting).run(request, items).await
}

/// The model: as asked for, else the profile's, else the only one of a server on this machine.
async fn model(
    args: &ChatArgs,
    profile: &crate::profiles::Profile,
    client: &Client,
    dry_run: bool,
) -> Result<String, Failure> {
    let named = args.model.clone().or_else(|| profile.model.clone()).filter(|model| !model.trim().is_empty());
    if let Some(model) = named {
        return Ok(model);
    }
    let missing = || Failure::validation("model is required");
    if !client.endpoint().base_url.is_loopback() || dry_run {
        return Err(missing()
            .hint("say --model, or set model in the profile; `agentchat profile test` lists those of the endpoint"));
    }
    match client.models().await {
        Ok(mut models) if models.len() == 1 => Ok(models.remove(0)),
        Ok(models) if models.is_empty() => {
            Err(missing().hint(format!("{} has no models yet", client.endpoint().base_url)))
        }
        Ok(models) => Err(missing().hint(format!("say --model: {}", models.join(", ")))),
        Err(error @ Error::Connect { .. }) => Err(Failure::of_request("list_models", &error)),
        Err(_) => Err(missing().hint("say --model: the server has no list of its models")),
    }
}
