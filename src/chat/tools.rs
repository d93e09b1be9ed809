//! Which tools are offered, whether they have to be used, and what runs them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::args::ToolArgs;
use super::failure::Failure;
use crate::responses::{BUILT_IN_TOOLS, Tool, ToolChoice};

/// Checked tools.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Tools {
    /// For the request.
    pub(crate) offered: Vec<Tool>,
    /// Whether one has to be used.
    pub(crate) choice: Option<ToolChoice>,
    /// The most calls of the endpoint's own tools.
    pub(crate) max_calls: Option<u32>,
    /// The programs of functions that have one, by the function's name.
    pub(crate) programs: BTreeMap<String, Vec<String>>,
}

/// Reads and checks what the options say. `more_types` are those that the profile's endpoint has beyond ours.
pub(crate) fn check(args: &ToolArgs, more_types: &[String]) -> Result<Tools, Failure> {
    let mut objects: Vec<Value> = args.types.iter().map(|kind| json!({"type": kind})).collect();
    if let Some(path) = &args.file {
        objects.extend(read_file(path)?);
    }
    let mut tools = Tools::default();
    for (number, object) in objects.into_iter().enumerate() {
        let Value::Object(mut fields) = object else {
            return Err(Failure::validation(format!("tool[{number}] is not a JSON object")));
        };
        check_tool(number, &fields, more_types)?;
        if let Some(run) = fields.remove("run") {
            let program = program(number, &fields, &run)?;
            tools.programs.insert(name_of(&fields).to_owned(), program);
        }
        tools.offered.push(Tool::Other(Value::Object(fields)));
    }
    check_names(&tools.offered)?;
    tools.choice = args.choice.as_deref().map(|choice| read_choice(choice, &tools.offered)).transpose()?;
    tools.max_calls = args.max_tool_calls.map(|most| max_calls(most, &tools.offered)).transpose()?;
    if args.run_tools && tools.programs.is_empty() {
        return Err(Failure::validation("--run-tools needs a function with \"run\" in --tools-file").hint(
            "\"run\": [\"program\", \"argument\"] gets the arguments as JSON on its input and prints the output",
        ));
    }
    Ok(tools)
}

fn read_file(path: &Path) -> Result<Vec<Value>, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::validation(format!("read --tools-file \"{shown}\": {}", super::files::reason(&error)))
    })?;
    let value: Value = serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .map_err(|error| Failure::validation(format!("--tools-file \"{shown}\" is not JSON: {error}")))?;
    match value {
        Value::Array(tools) => Ok(tools),
        Value::Object(_) => {
            Err(Failure::validation(format!("--tools-file \"{shown}\" has to be a JSON array of tool objects"))
                .hint("put the tool into [ ]"))
        }
        _ => Err(Failure::validation(format!("--tools-file \"{shown}\" has to be a JSON array of tool objects"))),
    }
}

fn name_of(fields: &Map<String, Value>) -> &str {
    fields.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn check_tool(number: usize, fields: &Map<String, Value>, more_types: &[String]) -> Result<(), Failure> {
    let Some(kind) = fields.get("type").and_then(Value::as_str) else {
        return Err(Failure::validation(format!("tool[{number}] has no \"type\""))
            .hint("a tool is an object such as {\"type\":\"function\",\"name\":\"f\"} or {\"type\":\"web_search\"}"));
    };
    if !BUILT_IN_TOOLS.contains(&kind) && !more_types.iter().any(|more| more == kind) {
        return Err(Failure::validation(format!("tool[{number}] type \"{kind}\" not supported in this build"))
            .hint(format!("if the endpoint has it, allow it in the profile: tools = [\"{kind}\"]")));
    }
    if kind != "function" {
        return Ok(());
    }
    if name_of(fields).is_empty() {
        let failure = Failure::validation("function tool requires 'name'");
        return Err(failure.hint(if fields.get("function").is_some_and(Value::is_object) {
            format!("tool[{number}]: the Responses API wants what is inside of \"function\" one level up")
        } else {
            format!("tool[{number}] needs \"name\", and a --tools-file: --tools takes types without options")
        }));
    }
    let name = name_of(fields);
    let wrong = |field: &str, what: &str| {
        Failure::validation(format!("tool[{number}] function \"{name}\": '{field}' has to be {what}"))
    };
    let given = |field: &str| fields.get(field).filter(|value| !value.is_null());
    if given("description").is_some_and(|value| !value.is_string()) {
        return Err(wrong("description", "a string"));
    }
    if given("strict").is_some_and(|value| !value.is_boolean()) {
        return Err(wrong("strict", "true or false"));
    }
    if given("parameters").is_some_and(|value| !value.is_object()) {
        return Err(wrong("parameters", "a JSON Schema, nested as an object"));
    }
    Ok(())
}

/// Two functions of one name cannot be told apart when they are called.
fn check_names(tools: &[Tool]) -> Result<(), Failure> {
    let names: Vec<&str> = functions(tools).collect();
    match names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        Some((_, name)) => Err(Failure::validation(format!("there are two functions \"{name}\""))),
        None => Ok(()),
    }
}

fn functions(tools: &[Tool]) -> impl Iterator<Item = &str> {
    tools.iter().filter(|tool| tool.kind() == "function").filter_map(|tool| match tool {
        Tool::Function(function) => Some(function.name.as_str()),
        Tool::Other(object) => object.get("name")?.as_str(),
    })
}

fn program(number: usize, fields: &Map<String, Value>, run: &Value) -> Result<Vec<String>, Failure> {
    let wrong = || {
        Failure::validation(format!("tool[{number}] 'run' has to be an array of strings, the program first"))
            .hint("for example \"run\": [\"python3\", \"weather.py\"]")
    };
    if fields.get("type").and_then(Value::as_str) != Some("function") {
        return Err(Failure::validation(format!("tool[{number}] only functions can have 'run'")));
    }
    let words = run.as_array().filter(|words| !words.is_empty()).ok_or_else(wrong)?;
    let words: Option<Vec<String>> = words.iter().map(|word| word.as_str().map(str::to_owned)).collect();
    words.filter(|words| !words[0].is_empty()).ok_or_else(wrong)
}

fn read_choice(text: &str, tools: &[Tool]) -> Result<ToolChoice, Failure> {
    let unsupported = || {
        Failure::validation(format!("unsupported tool_choice \"{text}\""))
            .hint("auto, required, none, function:NAME or {\"type\":\"function\",\"name\":\"NAME\"}")
    };
    let choice = match text {
        "auto" => return Ok(ToolChoice::Auto),
        "none" => return Ok(ToolChoice::None),
        "required" => ToolChoice::Required,
        _ => match (text.strip_prefix("function:"), serde_json::from_str::<Value>(text)) {
            (Some(name), _) if !name.is_empty() => ToolChoice::Function(name.to_owned()),
            (None, Ok(Value::Object(fields)))
                if fields.get("type") == Some(&json!("function")) && !name_of(&fields).is_empty() =>
            {
                ToolChoice::Function(name_of(&fields).to_owned())
            }
            (None, Ok(Value::Object(fields)))
                if fields
                    .get("type")
                    .and_then(Value::as_str)
                    .is_some_and(|kind| kind != "function" && tools.iter().any(|tool| tool.kind() == kind)) =>
            {
                ToolChoice::Other(Value::Object(fields))
            }
            _ => return Err(unsupported()),
        },
    };
    if tools.is_empty() {
        return Err(Failure::validation(format!("--tool-choice {text} needs --tools or --tools-file")));
    }
    if let ToolChoice::Function(name) = &choice
        && !functions(tools).any(|function| function == name)
    {
        let mut known = String::new();
        for (at, name) in functions(tools).enumerate() {
            let _ = write!(known, "{}{name}", if at == 0 { "" } else { ", " });
        }
        return Err(Failure::validation(format!(
            "tool_choice names the function \"{name}\", which is not among the tools"
        ))
        .hint(if known.is_empty() {
            "there are no functions".to_owned()
        } else {
            format!("there are: {known}")
        }));
    }
    Ok(choice)
}

fn max_calls(most: i64, tools: &[Tool]) -> Result<u32, Failure> {
    if let Some(name) = functions(tools).next() {
        return Err(Failure::validation(format!(
            "--max-tool-calls cannot be used with function tools (\"{name}\"): endpoints count calls of their own tools only"
        ))
        .hint("Ark answers \"max_tool_calls only supported by build-in tools now\"; leave it out, or use --max-turns with --run-tools"));
    }
    u32::try_from(most)
        .ok()
        .filter(|most| *most > 0)
        .ok_or_else(|| Failure::validation("--max-tool-calls has to be at least 1"))
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;
