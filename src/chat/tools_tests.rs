use super::*;

fn file(json: &Value) -> (tempfile::TempDir, ToolArgs) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tools.json");
    std::fs::write(&path, json.to_string()).unwrap();
    (folder, ToolArgs { file: Some(path), ..ToolArgs::default() })
}

fn types(types: &[&str]) -> ToolArgs {
    ToolArgs { types: types.iter().map(|kind| (*kind).to_owned()).collect(), ..ToolArgs::default() }
}

fn message(args: &ToolArgs) -> String {
    check(args, &[]).unwrap_err().message
}

#[test]
fn sugar_comes_first_and_the_file_after() {
    let (_folder, mut args) =
        file(&json!([{"type": "function", "name": "f", "strict": true, "run": ["sh", "-c", "date"],
        "parameters": {"type": "object", "properties": {"a": {"type": "object"}}}}]));
    args.types = vec!["web_search".into()];
    let tools = check(&args, &[]).unwrap();
    assert_eq!(
        serde_json::to_value(&tools.offered).unwrap(),
        json!([{"type": "web_search"}, {"type": "function", "name": "f", "strict": true,
            "parameters": {"type": "object", "properties": {"a": {"type": "object"}}}}])
    );
    assert_eq!(tools.programs["f"], ["sh", "-c", "date"]);
}

#[test]
fn other_types_need_a_profile_that_has_them() {
    for kind in ["mcp", "knowledge_search", "image_process"] {
        assert_eq!(
            message(&types(&["web_search", kind])),
            format!("tool[1] type \"{kind}\" not supported in this build")
        );
        assert!(check(&types(&[kind]), &[kind.to_owned()]).is_ok());
    }
}

#[test]
fn functions_are_checked() {
    assert_eq!(message(&types(&["function"])), "function tool requires 'name'");
    for (tool, wanted) in [
        (json!({"type": "function"}), "function tool requires 'name'"),
        (json!({"type": "function", "name": ""}), "function tool requires 'name'"),
        (json!({"type": "function", "function": {"name": "f"}}), "function tool requires 'name'"),
        (json!({"type": "function", "name": "f", "parameters": "{}"}), "'parameters' has to be a JSON Schema"),
        (json!({"type": "function", "name": "f", "strict": "yes"}), "'strict' has to be true or false"),
        (json!({"type": "function", "name": "f", "description": 5}), "'description' has to be a string"),
        (json!({"type": "function", "name": "f", "run": "date"}), "'run' has to be an array of strings"),
        (json!({"type": "function", "name": "f", "run": []}), "'run' has to be an array of strings"),
        (json!({"type": "web_search", "run": ["date"]}), "only functions can have 'run'"),
        (json!({"name": "f"}), "tool[0] has no \"type\""),
        (json!("web_search"), "tool[0] is not a JSON object"),
    ] {
        let (_folder, args) = file(&json!([tool]));
        assert!(message(&args).contains(wanted), "{tool}: {}", message(&args));
    }
    let (_folder, args) = file(&json!([{"type": "function", "name": "f"}, {"type": "function", "name": "f"}]));
    assert_eq!(message(&args), "there are two functions \"f\"");
}

#[test]
fn the_file_has_to_be_an_array() {
    let (_folder, args) = file(&json!({"type": "web_search"}));
    assert!(message(&args).contains("JSON array"));
    let missing = ToolArgs { file: Some("/nowhere/tools.json".into()), ..ToolArgs::default() };
    assert_eq!(message(&missing), "read --tools-file \"/nowhere/tools.json\": no such file or directory");
}

#[test]
fn choices() {
    let with = |choice: &str| {
        let (_folder, mut args) = file(&json!([{"type": "function", "name": "f"}, {"type": "web_search"}]));
        args.choice = Some(choice.to_owned());
        check(&args, &[]).map(|tools| tools.choice.unwrap()).map_err(|failure| failure.message)
    };
    assert_eq!(with("auto"), Ok(ToolChoice::Auto));
    assert_eq!(with("required"), Ok(ToolChoice::Required));
    assert_eq!(with("none"), Ok(ToolChoice::None));
    assert_eq!(with("function:f"), Ok(ToolChoice::Function("f".into())));
    assert_eq!(with(r#"{"type":"function","name":"f"}"#), Ok(ToolChoice::Function("f".into())));
    assert_eq!(with(r#"{"type":"web_search"}"#), Ok(ToolChoice::Other(json!({"type": "web_search"}))));
    for wrong in ["", "Auto", "f", "function:", "function", r#"{"type":"function"}"#, r#"{"type":"mcp"}"#, "[]", "5"] {
        assert_eq!(with(wrong), Err(format!("unsupported tool_choice \"{wrong}\"")));
    }
    assert!(with("function:g").unwrap_err().contains("\"g\""));
    assert!(message(&ToolArgs { choice: Some("required".into()), ..ToolArgs::default() }).contains("needs --tools"));
}

#[test]
fn the_endpoint_counts_its_own_tools_only() {
    let (_folder, mut args) = file(&json!([{"type": "function", "name": "f"}]));
    args.max_tool_calls = Some(3);
    args.types = vec!["web_search".into()];
    assert!(message(&args).contains("--max-tool-calls cannot be used with function tools"));
    assert_eq!(check(&ToolArgs { max_tool_calls: Some(3), ..types(&["web_search"]) }, &[]).unwrap().max_calls, Some(3));
    assert!(message(&ToolArgs { max_tool_calls: Some(0), ..types(&["web_search"]) }).contains("at least 1"));
}
