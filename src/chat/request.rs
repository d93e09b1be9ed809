//! From options to a request: everything that can be told to be wrong before anything is sent.

use serde_json::{Map, Value, json};

use super::args::{ChatArgs, OutputArgs};
use super::failure::Failure;
use super::files;
use super::schema::Schema;
use super::tools::{self, Tools};
use crate::profiles::Profile;
use crate::responses::{Dialect, Reasoning, Request, item};

/// The name that a schema has if none is given.
const SCHEMA_NAME: &str = "agentchat_response";

/// The longest name of a schema that endpoints take.
const MAX_SCHEMA_NAME: usize = 64;

const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// What does not depend on the endpoint.
#[derive(Debug)]
pub(crate) struct Checked {
    /// All but model, input, tools, and what only some endpoints have.
    pub(crate) request: Request,
    /// Fields that only Ark has.
    pub(crate) ark_fields: Map<String, Value>,
    /// What answers have to fit, with `--text-strict`.
    pub(crate) schema: Option<Schema>,
    pub(crate) inputs: Vec<files::Input>,
    /// Items with what the functions gave.
    pub(crate) outputs: Vec<Value>,
    /// When a kept response is forgotten.
    pub(crate) expire_at: Option<i64>,
}

/// Checks the options.
pub(crate) fn check(args: &ChatArgs) -> Result<Checked, Failure> {
    check_output(&args.output)?;
    let (text, schema) = text_format(&args.output)?;
    let mut ark_fields = Map::new();
    if let Some(mode) = one_of("thinking.type", args.thinking.as_deref(), &["auto", "enabled", "disabled"])? {
        ark_fields.insert("thinking".to_owned(), json!({"type": mode}));
    }
    if let Some(caching) = caching(args)? {
        ark_fields.insert("caching".to_owned(), caching);
    }
    if let Some(at) = expire_at(args)? {
        ark_fields.insert("expire_at".to_owned(), at.into());
    }
    let effort = one_of("reasoning.effort", args.reasoning_effort.as_deref(), EFFORTS)?;
    let request = Request {
        instructions: args.instructions.clone(),
        temperature: in_range("--temperature", args.temperature, 2.0)?,
        top_p: in_range("--top-p", args.top_p, 1.0)?,
        max_output_tokens: args.max_output_tokens.map(|count| positive("--max-output-tokens", count)).transpose()?,
        reasoning: effort.map(|effort| Reasoning { effort: Some(effort.to_owned()), summary: None }),
        text,
        store: args.store,
        previous_response_id: args.previous_response_id.clone(),
        ..Request::default()
    };
    let inputs = args.input.iter().map(|input| files::parse(input)).collect::<Result<_, _>>()?;
    let outputs = args.tool_output.iter().map(|text| tool_output(text, args)).collect::<Result<_, _>>()?;
    Ok(Checked { request, ark_fields, schema, inputs, outputs, expire_at: args.expire_at })
}

impl Checked {
    /// The request for an endpoint, without its input. What the endpoint does not have is left out and named.
    pub(crate) fn for_endpoint(
        &self,
        args: &ChatArgs,
        profile: &Profile,
        model: String,
    ) -> Result<(Request, Tools, Vec<String>), Failure> {
        let mut tools = tools::check(&args.tools, &profile.tools)?;
        let mut request = Request { model, ..self.request.clone() };
        request.tools = std::mem::take(&mut tools.offered);
        request.tool_choice = tools.choice.take();
        request.max_tool_calls = tools.max_calls;
        let mut warnings = Vec::new();
        let dialect = profile.dialect;
        if dialect.capabilities().ark_fields || dialect == Dialect::Generic {
            request.more.clone_from(&self.ark_fields);
        } else {
            let unknown = self.ark_fields.keys().filter(|name| *name != "expire_at");
            warnings.extend(unknown.map(|name| format!("{} has no \"{name}\": it is not sent", dialect.name())));
        }
        if !dialect.capabilities().tool_choice && request.tool_choice.is_some() {
            warnings.push(format!("{} ignores tool_choice", dialect.name()));
        }
        let searches = request.tools.iter().any(|tool| tool.kind() == "web_search");
        if searches && !dialect.capabilities().web_search && !profile.tools.iter().any(|kind| kind == "web_search") {
            warnings.push(format!("{} is not known to search the web", dialect.name()));
        }
        Ok((request, tools, warnings))
    }
}

fn check_output(output: &OutputArgs) -> Result<(), Failure> {
    if let Some(format) = output.format.as_deref().filter(|format| *format != "json") {
        return Err(Failure::validation(format!("unsupported --format \"{format}\""))
            .hint("there is only json; --stream prints text"));
    }
    if output.include_events && output.stream != Some(true) {
        return Err(Failure::validation("--include-events requires --stream"));
    }
    Ok(())
}

fn one_of<'text>(field: &str, value: Option<&'text str>, allowed: &[&str]) -> Result<Option<&'text str>, Failure> {
    match value {
        Some(value) if !allowed.contains(&value) => {
            Err(Failure::validation(format!("unsupported {field} \"{value}\"")).hint(allowed.join(", ")))
        }
        value => Ok(value),
    }
}

/// An explicit 0 is a value.
fn in_range(option: &str, value: Option<f64>, most: f64) -> Result<Option<f64>, Failure> {
    match value {
        Some(value) if !(0.0..=most).contains(&value) => {
            Err(Failure::validation(format!("{option} has to be between 0 and {most}")))
        }
        value => Ok(value),
    }
}

fn positive(option: &str, count: i64) -> Result<u32, Failure> {
    let count = u32::try_from(count).ok().filter(|count| *count > 0);
    count.ok_or_else(|| Failure::validation(format!("{option} has to be at least 1")))
}

fn caching(args: &ChatArgs) -> Result<Option<Value>, Failure> {
    let mode = one_of("caching.type", args.caching.as_deref(), &["enabled", "disabled"])?;
    if args.cache_prefix == Some(true) {
        if mode != Some("enabled") {
            return Err(Failure::validation("--cache-prefix requires --caching enabled"));
        }
        if args.max_output_tokens.is_some() {
            return Err(Failure::validation("--cache-prefix cannot be used with --max-output-tokens"));
        }
    }
    Ok(mode.map(|mode| match args.cache_prefix {
        Some(prefix) => json!({"type": mode, "prefix": prefix}),
        None => json!({"type": mode}),
    }))
}

fn expire_at(args: &ChatArgs) -> Result<Option<i64>, Failure> {
    let Some(at) = args.expire_at else { return Ok(None) };
    if args.store == Some(false) {
        return Err(Failure::validation("--expire-at requires --store"));
    }
    if at <= super::kept::now() {
        return Err(Failure::validation("--expire-at has to be in the future, in seconds since 1970")
            .hint("for example --expire-at $(($(date +%s) + 86400))"));
    }
    Ok(Some(at))
}

fn text_format(output: &OutputArgs) -> Result<(Option<Value>, Option<Schema>), Failure> {
    let has_schema = output.text_schema.is_some();
    let format = match output.text_format.as_deref() {
        None if has_schema => "json_schema",
        None => {
            return if output.text_strict || output.text_schema_name.is_some() {
                Err(Failure::validation("--text-strict and --text-schema-name require --text-schema <path>"))
            } else {
                Ok((None, None))
            };
        }
        Some(format @ ("text" | "json_object" | "json_schema")) => format,
        Some(other) => {
            return Err(Failure::validation(format!("unsupported text.format.type \"{other}\""))
                .hint("text, json_object, json_schema"));
        }
    };
    if format != "json_schema" {
        return if has_schema {
            Err(Failure::validation(format!("--text-schema requires --text-format=json_schema, not {format}")))
        } else {
            Ok((Some(json!({"format": {"type": format}})), None))
        };
    }
    let Some(path) = &output.text_schema else {
        return Err(Failure::validation("--text-format=json_schema requires --text-schema <path>"));
    };
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::validation(format!("read --text-schema \"{shown}\": {}", files::reason(&error))))?;
    let schema: Value = if text.trim().is_empty() {
        Value::Null
    } else {
        serde_json::from_str(&text)
            .map_err(|error| Failure::validation(format!("--text-schema \"{shown}\" is not JSON: {error}")))?
    };
    if schema.as_object().is_none_or(Map::is_empty) {
        return Err(Failure::validation("text.format.schema is required when type=json_schema")
            .hint(format!("\"{shown}\" has to be a JSON Schema, an object")));
    }
    let compiled = output.text_strict.then(|| Schema::new(&schema)).transpose().map_err(|reason| {
        Failure::validation(format!("--text-schema \"{shown}\" cannot be checked: {reason}"))
            .hint("without --text-strict it is sent as it is, and the answer is not checked")
    })?;
    let name = output.text_schema_name.as_deref().unwrap_or(SCHEMA_NAME);
    if name.is_empty()
        || name.len() > MAX_SCHEMA_NAME
        || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    {
        return Err(Failure::validation(format!(
            "--text-schema-name \"{name}\" has to be 1 to {MAX_SCHEMA_NAME} of a-z A-Z 0-9 _ -"
        )));
    }
    let mut format = json!({"type": "json_schema", "name": name, "schema": schema});
    if output.text_strict {
        format["strict"] = true.into();
    }
    Ok((Some(json!({"format": format})), compiled))
}

fn tool_output(text: &str, args: &ChatArgs) -> Result<Value, Failure> {
    if args.previous_response_id.is_none() {
        return Err(Failure::validation(
            "--tool-output requires --previous-response-id, the response that has the call",
        ));
    }
    let (call_id, output) = text.split_once('=').filter(|(id, _)| !id.is_empty()).ok_or_else(|| {
        Failure::validation(format!("--tool-output \"{text}\" has to be CALL_ID=OUTPUT"))
            .hint("the call_id is in function_calls")
    })?;
    let output = match output.strip_prefix('@') {
        Some(path) => std::fs::read_to_string(path).map_err(|error| {
            Failure::validation(format!("read --tool-output \"{path}\": {}", files::reason(&error)))
        })?,
        None => output.to_owned(),
    };
    Ok(item::function_call_output(call_id, &output))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(args: &ChatArgs) -> String {
        check(args).unwrap_err().message
    }

    fn output(output: OutputArgs) -> ChatArgs {
        ChatArgs { output, ..ChatArgs::default() }
    }

    fn schema_file(text: &str) -> (tempfile::NamedTempFile, OutputArgs) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let path = file.path().to_owned();
        (file, OutputArgs { text_schema: Some(path), ..OutputArgs::default() })
    }

    #[test]
    fn words_that_are_not_known_are_named() {
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            refused(&ChatArgs { thinking: text("on"), ..ChatArgs::default() }),
            "unsupported thinking.type \"on\""
        );
        assert_eq!(
            refused(&ChatArgs { caching: text("on"), ..ChatArgs::default() }),
            "unsupported caching.type \"on\""
        );
        assert_eq!(
            refused(&ChatArgs { reasoning_effort: text("big"), ..ChatArgs::default() }),
            "unsupported reasoning.effort \"big\""
        );
        let format = OutputArgs { text_format: text("xml"), ..OutputArgs::default() };
        assert_eq!(refused(&output(format)), "unsupported text.format.type \"xml\"");
    }

    #[test]
    fn options_that_exclude_or_need_each_other() {
        let prefix = ChatArgs { cache_prefix: Some(true), ..ChatArgs::default() };
        assert_eq!(refused(&prefix), "--cache-prefix requires --caching enabled");
        let caching = ChatArgs { caching: Some("enabled".into()), ..prefix };
        assert_eq!(check(&caching).unwrap().ark_fields["caching"], json!({"type": "enabled", "prefix": true}));
        let limited = ChatArgs { max_output_tokens: Some(5), ..caching };
        assert_eq!(refused(&limited), "--cache-prefix cannot be used with --max-output-tokens");
        let events = OutputArgs { include_events: true, ..OutputArgs::default() };
        assert_eq!(refused(&output(events)), "--include-events requires --stream");
        let expiring = ChatArgs { expire_at: Some(4_000_000_000), ..ChatArgs::default() };
        assert!(check(&expiring).is_ok());
        assert_eq!(refused(&ChatArgs { store: Some(false), ..expiring }), "--expire-at requires --store");
        assert!(refused(&ChatArgs { expire_at: Some(1), ..ChatArgs::default() }).contains("future"));
        assert!(
            refused(&ChatArgs { tool_output: vec!["a=b".into()], ..ChatArgs::default() })
                .contains("--previous-response-id")
        );
    }

    #[test]
    fn numbers_have_their_range_and_zero_is_one() {
        let zero = check(&ChatArgs { temperature: Some(0.0), top_p: Some(0.0), ..ChatArgs::default() }).unwrap();
        assert_eq!((zero.request.temperature, zero.request.top_p), (Some(0.0), Some(0.0)));
        assert!(refused(&ChatArgs { temperature: Some(-0.1), ..ChatArgs::default() }).contains("--temperature"));
        assert!(refused(&ChatArgs { top_p: Some(1.1), ..ChatArgs::default() }).contains("--top-p"));
        assert!(
            refused(&ChatArgs { max_output_tokens: Some(0), ..ChatArgs::default() }).contains("--max-output-tokens")
        );
    }

    #[test]
    fn a_schema_is_read_and_checked_before_anything_is_sent() {
        let format = OutputArgs { text_format: Some("json_schema".into()), ..OutputArgs::default() };
        assert_eq!(refused(&output(format.clone())), "--text-format=json_schema requires --text-schema <path>");
        let missing = OutputArgs { text_schema: Some("/nowhere/s.json".into()), ..format };
        assert_eq!(refused(&output(missing)), "read --text-schema \"/nowhere/s.json\": no such file or directory");
        for empty in ["", "null", "{}", "[]"] {
            let (_file, format) = schema_file(empty);
            assert_eq!(refused(&output(format)), "text.format.schema is required when type=json_schema");
        }
        let (_file, format) = schema_file(r#"{"type": "object"}"#);
        let text = check(&output(OutputArgs { text_strict: true, ..format.clone() })).unwrap().request.text;
        let wanted =
            json!({"type": "json_schema", "name": "agentchat_response", "schema": {"type": "object"}, "strict": true});
        assert_eq!(text, Some(json!({"format": wanted})));
        assert!(
            refused(&output(OutputArgs { text_schema_name: Some("a b".into()), ..format }))
                .contains("--text-schema-name")
        );
        let (_file, format) = schema_file(r#"{"if": {}}"#);
        assert!(check(&output(format.clone())).is_ok());
        assert!(refused(&output(OutputArgs { text_strict: true, ..format })).contains("cannot be checked"));
    }

    #[test]
    fn what_an_endpoint_does_not_have_is_named_and_not_sent() {
        let args = ChatArgs { thinking: Some("enabled".into()), ..ChatArgs::default() };
        let with = |dialect| {
            let profile = Profile { dialect, ..Profile::default() };
            let (request, _, warnings) = check(&args).unwrap().for_endpoint(&args, &profile, "m".into()).unwrap();
            (request.more.contains_key("thinking"), warnings.len())
        };
        assert_eq!(with(Dialect::Ark), (true, 0));
        assert_eq!(with(Dialect::Generic), (true, 0));
        assert_eq!(with(Dialect::OpenAi), (false, 1));
    }
}
