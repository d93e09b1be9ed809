//! `agentchat profile`.

#![expect(clippy::doc_markdown, reason = "some comments are the help, which has no Markdown")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgAction, Args, Subcommand};
use serde_json::{Value, json};

use super::args::EndpointArgs;
use super::failure::Failure;
use super::output::{self, Output};
use crate::profiles::{Config, KeyState, Profile, config_path, find_local, key_state};
use crate::responses::{Dialect, Input, Request};

/// Shown below the commands.
pub(crate) const EXAMPLES: &str = "\
Examples:
  agentchat profile list
  agentchat profile add work --dialect openai --base-url https://gateway.example.com/v1 \\
      --key-command pass --key-command show --key-command gateway --model gpt-5 --default
  agentchat profile test work

A key is never written into the file: name the variable that has it, or the program that prints it.";

/// What can be done with profiles.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ProfileCommand {
    /// List endpoints: those of the configuration file, the known ones, and servers on this machine
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a profile into the configuration file
    Add(Box<AddArgs>),
    /// Try an endpoint: its key, its models, and one short request
    Test {
        /// The profile; without one, the endpoint that chat would take
        name: Option<String>,
        /// Model, instead of the profile's
        #[arg(long, short)]
        model: Option<String>,
    },
}

/// A new profile.
#[derive(Debug, Clone, Args)]
pub(crate) struct AddArgs {
    /// Its name
    name: String,
    /// Kind of server: openai, ark, ollama, llama.cpp, vllm, lmstudio or generic
    #[arg(long, default_value = "generic")]
    dialect: String,
    /// The part before /responses; without it that of the dialect
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Environment variable that has the key
    #[arg(long, value_name = "NAME")]
    key_env: Option<String>,
    /// Program that prints the key, then its arguments, each with the option again
    #[arg(long, value_name = "WORD", action = ArgAction::Append, allow_hyphen_values = true)]
    key_command: Vec<String>,
    /// Model if none is asked for
    #[arg(long, short)]
    model: Option<String>,
    /// Tool type that the endpoint has beyond function and web_search; may be repeated
    #[arg(long, value_name = "TYPE", action = ArgAction::Append)]
    tool: Vec<String>,
    /// Header to send along: name=value, or name=env:VARIABLE; may be repeated
    #[arg(long, value_name = "NAME=VALUE", action = ArgAction::Append)]
    header: Vec<String>,
    /// File of certificates (PEM) to trust
    #[arg(long, value_name = "PATH")]
    ca_file: Option<PathBuf>,
    /// Take this profile if none is asked for
    #[arg(long)]
    default: bool,
    /// Replace a profile of that name
    #[arg(long)]
    replace: bool,
}

/// Carries out a command.
pub(crate) async fn run(command: ProfileCommand) -> ExitCode {
    super::finish(match command {
        ProfileCommand::List { json } => list(json).await,
        ProfileCommand::Add(args) => add(*args),
        ProfileCommand::Test { name, model } => test(name, model).await,
    })
}

struct Row {
    name: String,
    dialect: Dialect,
    url: String,
    key: String,
    model: String,
    is_default: bool,
    from: &'static str,
}

async fn list(as_json: bool) -> Result<(), Failure> {
    let path = config_path()?;
    let config = Config::read(&path)?;
    let running = find_local().await;
    let mut rows = Vec::new();
    for name in config.names() {
        let profile = config.profile(&name)?;
        let runs = running.iter().any(|(local, _)| *local == name);
        rows.push(Row {
            dialect: profile.dialect,
            url: profile.base_url(&name).map_or_else(|error| error.to_string(), |url| url.to_string()),
            key: key_text(&profile),
            model: profile.model.clone().unwrap_or_default(),
            is_default: config.default_profile.as_deref() == Some(&name),
            from: match (config.profiles.contains_key(&name), runs) {
                (true, _) => "file",
                (false, true) => "running",
                (false, false) => "known",
            },
            name,
        });
    }
    if as_json {
        let row = |row: &Row| {
            json!({"name": row.name, "dialect": row.dialect.name(), "base_url": row.url, "key": row.key, "model": row.model,
                "default": row.is_default, "from": row.from})
        };
        let rows: Vec<Value> = rows.iter().map(row).collect();
        return super::print_json(&json!({"config": path, "profiles": rows})).await;
    }
    let mut out = Output::new();
    let cells: Vec<[String; 6]> =
        std::iter::once(["NAME", "DIALECT", "BASE URL", "KEY", "MODEL", "FROM"].map(str::to_owned))
            .chain(rows.into_iter().map(|row| {
                let name = if row.is_default { format!("{} (default)", row.name) } else { row.name };
                [name, row.dialect.name().to_owned(), row.url, row.key, row.model, row.from.to_owned()]
            }))
            .collect();
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..6).map(width).collect();
    for row in &cells {
        let line: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        out.push(line.join("  ").trim_end());
        out.push("\n");
    }
    out.push(&format!("\nThe file is {}.\n", path.display()));
    out.flush().await.map_err(|error| Failure::of_output(&error))
}

fn key_text(profile: &Profile) -> String {
    match key_state(profile) {
        KeyState::NotNeeded => "-".to_owned(),
        KeyState::InVariable(name) => format!("{name} (set)"),
        KeyState::MissingVariable(name) => format!("{name} (not set)"),
        KeyState::FromCommand(program) => format!("from {program}"),
    }
}

fn add(args: AddArgs) -> Result<(), Failure> {
    let dialect = serde_json::from_value(Value::String(args.dialect.clone())).map_err(|_| {
        let names: Vec<&str> = Dialect::ALL.iter().map(|dialect| dialect.name()).collect();
        Failure::validation(format!("unsupported dialect \"{}\"", args.dialect)).hint(names.join(", "))
    })?;
    if args.name.is_empty() || !args.name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c)) {
        return Err(Failure::validation("a profile's name has letters, digits, - _ and . only"));
    }
    let mut headers = BTreeMap::new();
    for header in &args.header {
        let (name, value) = header
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| Failure::validation("--header has to be NAME=VALUE"))?;
        headers.insert(name.to_owned(), value.to_owned());
    }
    let looks_like_a_key = |text: &String| crate::logging::redact::redact(text) != **text;
    if args
        .key_env
        .as_ref()
        .is_some_and(|name| name.contains(|c: char| !c.is_ascii_alphanumeric() && c != '_') || looks_like_a_key(name))
    {
        return Err(Failure::validation("--key-env is the name of a variable, not the key itself")
            .hint("put the key into your environment, or into a password manager for --key-command"));
    }
    let profile = Profile {
        dialect,
        base_url: args.base_url,
        key_env: args.key_env,
        key_command: args.key_command,
        model: args.model,
        tools: args.tool,
        headers,
        ca_file: args.ca_file,
        ..Profile::default()
    };
    profile.base_url(&args.name)?;
    let path = config_path()?;
    Config::add(&path, &args.name, &profile, args.default, args.replace)?;
    output::say(&format!(
        "profile {} is in {}; `agentchat profile test {}` tries it",
        args.name,
        path.display(),
        args.name
    ));
    Ok(())
}

async fn test(name: Option<String>, model: Option<String>) -> Result<(), Failure> {
    let args = EndpointArgs { profile: name, ..EndpointArgs::default() };
    let chosen = super::choose(&args, false).await?;
    let mut out = Output::new();
    let endpoint = &chosen.endpoint;
    out.push(&format!("endpoint  {} ({}, {})\n", endpoint.name, endpoint.base_url, endpoint.dialect.name()));
    out.push(&format!("key       {}\n", key_text(&chosen.profile)));
    out.flush().await.map_err(|error| Failure::of_output(&error))?;
    let client = super::client(chosen.endpoint)?;
    let models = match client.models().await {
        Ok(models) => models,
        Err(error @ crate::responses::Error::Api(_)) if model.is_some() || chosen.profile.model.is_some() => {
            output::warn(&format!("it has no list of models: {error}"));
            Vec::new()
        }
        Err(error) => return Err(Failure::of_request("list_models", &error)),
    };
    out.push(&format!("models    {}\n", models.join(", ")));
    let model = model.or(chosen.profile.model).or_else(|| Some(models.first()?.clone()));
    let model = model.ok_or_else(|| Failure::validation("model is required").hint("it has none: say --model"))?;
    let request = Request {
        model: model.clone(),
        input: Input::Text("Answer with the word: ready".to_owned()),
        store: Some(false),
        max_output_tokens: Some(64),
        ..Request::default()
    };
    let started = std::time::Instant::now();
    let response = client.create(&request).await.map_err(|error| Failure::of_request("create_responses", &error))?;
    out.push(&format!(
        "answer    {:?} from {model} in {:.1} s\n",
        response.output_text(),
        started.elapsed().as_secs_f32()
    ));
    out.flush().await.map_err(|error| Failure::of_output(&error))
}
