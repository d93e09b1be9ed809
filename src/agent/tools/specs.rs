//! What the model is told about the functions: few, with simple schemas, so that small models can use them.

use serde_json::{Value, json};

use crate::responses::Function;

/// The names, in the order in which they are offered.
pub(in crate::agent) const NAMES: [&str; 7] =
    ["read_file", "edit_file", "write_file", "run_command", "grep", "glob", "update_plan"];

/// The functions. With `only_reading` those that change nothing.
pub(in crate::agent) fn functions(only_reading: bool) -> Vec<Function> {
    let changes = |name: &&str| matches!(*name, "edit_file" | "write_file" | "run_command");
    NAMES.iter().filter(|name| !(only_reading && changes(name))).map(|name| function(name)).collect()
}

fn function(name: &str) -> Function {
    let text = |description: &str| json!({"type": "string", "description": description});
    let number = |description: &str| json!({"type": "integer", "description": description});
    let flag = |description: &str| json!({"type": "boolean", "description": description});
    let (description, properties, required): (&str, Value, &[&str]) = match name {
        "read_file" => (
            "Read a text file or a picture of the project, as the user sees it now, at most 2000 lines at once.",
            json!({
                "path": text("Path, relative to the project"),
                "offset": number("First line, from 1"),
                "limit": number("How many lines"),
            }),
            &["path"],
        ),
        "edit_file" => (
            "Replace a piece of text that is there exactly once in a file that you have read.",
            json!({
                "path": text("Path, relative to the project"),
                "old_text": text("The text to replace, exactly as it is in the file, with enough lines around it to be unique"),
                "new_text": text("What to put in its place"),
                "replace_all": flag("Replace every occurrence"),
            }),
            &["path", "old_text", "new_text"],
        ),
        "write_file" => (
            "Create a file, or replace all of one that you have read.",
            json!({"path": text("Path, relative to the project"), "content": text("The whole text")}),
            &["path", "content"],
        ),
        "run_command" => (
            "Run a command line in a shell, and get its output and exit code.",
            json!({
                "command": text("The command line"),
                "cwd": text("Folder, relative to the project; the project itself if left out"),
                "timeout_s": number("Seconds after which it is stopped, 120 if left out"),
            }),
            &["command"],
        ),
        "grep" => (
            "Find lines by a regular expression in the files of the project, without those that git ignores.",
            json!({
                "pattern": text("Regular expression"),
                "path": text("Folder or file to look in"),
                "glob": text("Only files of these names, such as *.rs"),
                "ignore_case": flag("Upper and lower case are the same"),
                "context": number("Lines before and after each hit"),
                "limit": number("The most hits, 100 if left out"),
            }),
            &["pattern"],
        ),
        "glob" => (
            "Find files by their path, without those that git ignores.",
            json!({
                "pattern": text("Such as *.rs, or src/**/*.test.ts"),
                "path": text("Folder to look in"),
                "limit": number("The most files, 1000 if left out"),
            }),
            &["pattern"],
        ),
        _ => (
            "Show the user your plan for work of several steps, each time the whole of it.",
            json!({
                "plan": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "step": text("What is to be done"),
                            "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
                        },
                        "required": ["step", "status"],
                        "additionalProperties": false,
                    },
                },
            }),
            &["plan"],
        ),
    };
    let parameters = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    Function {
        name: name.to_owned(),
        description: Some(description.to_owned()),
        parameters: Some(parameters),
        // Where it is true, every member would have to be there.
        strict: Some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_says_what_it_wants() {
        for function in functions(false) {
            let parameters = function.parameters.unwrap();
            for name in parameters["required"].as_array().unwrap() {
                assert!(parameters["properties"].get(name.as_str().unwrap()).is_some(), "{}", function.name);
            }
        }
        let reading: Vec<String> = functions(true).into_iter().map(|function| function.name).collect();
        assert_eq!(reading, ["read_file", "grep", "glob", "update_plan"]);
    }
}
