//! Running the programs of functions, each after the user said so.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::Stdio;

use serde::Serialize;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use super::failure::Failure;
use super::output::harmless;
use crate::responses::FunctionCall;

/// The most of a program's output that the model gets, in bytes.
const MAX_OUTPUT_BYTES: u64 = 1024 * 1024;

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Run {
    pub(crate) call_id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
    /// What the model is told.
    pub(crate) output: String,
    /// The program's exit code; none if it did not run, or was ended by a signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<i32>,
}

/// Runs functions.
#[derive(Debug)]
pub(crate) struct Runner {
    programs: BTreeMap<String, Vec<String>>,
    /// Where the user is asked; none with `--yes`.
    terminal: Option<Terminal>,
    asks: bool,
    /// Functions that need no question any more.
    always: BTreeSet<String>,
}

#[derive(Debug)]
struct Terminal {
    read: BufReader<File>,
    write: File,
}

enum Answer {
    Yes,
    No,
    Quit,
}

impl Runner {
    /// # Errors
    /// The user is to be asked, and there is no terminal.
    pub(crate) fn new(programs: BTreeMap<String, Vec<String>>, yes: bool) -> Result<Self, Failure> {
        let terminal = if yes { None } else { Some(Terminal::open()?) };
        Ok(Self { programs, terminal, asks: !yes, always: BTreeSet::new() })
    }

    /// Whether a question is open, so that the cursor is at its end.
    pub(crate) fn is_asking(&self) -> bool {
        self.asks && self.terminal.is_none()
    }

    /// Whether this function has a program.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.programs.contains_key(name)
    }

    /// Asks, and runs the call.
    ///
    /// # Errors
    /// The user wants to stop.
    pub(crate) async fn run(&mut self, call: &FunctionCall) -> Result<Run, Failure> {
        let done = |output: String, exit_code| Run {
            call_id: call.call_id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            output,
            exit_code,
        };
        let Some(program) = self.programs.get(&call.name).cloned() else {
            return Ok(done(format!("There is no function {:?}.", call.name), None));
        };
        // Models call functions without parameters with an empty text.
        let arguments = if call.arguments.trim().is_empty() { "{}" } else { call.arguments.as_str() };
        if let Err(error) = serde_json::from_str::<Value>(arguments) {
            return Ok(done(
                format!("The arguments are not valid JSON ({error}). Call the function again with valid JSON."),
                None,
            ));
        }
        match self.ask(call, &program).await? {
            Answer::Yes => {}
            Answer::No => return Ok(done("The user did not allow this call.".to_owned(), None)),
            Answer::Quit => {
                return Err(Failure {
                    kind: super::failure::Kind::Cancelled,
                    message: "stopped by the user".to_owned(),
                    hint: None,
                });
            }
        }
        Ok(match execute(&program, arguments, None).await {
            Ok((output, code)) => done(output, code),
            Err(error) => done(format!("{} could not be run: {error}", program[0]), None),
        })
    }

    async fn ask(&mut self, call: &FunctionCall, program: &[String]) -> Result<Answer, Failure> {
        if self.always.contains(&call.name) {
            return Ok(Answer::Yes);
        }
        let Some(mut terminal) = self.terminal.take() else { return Ok(Answer::Yes) };
        let question = harmless(&format!(
            "Run {} with {}\n  {}\n[y]es, [n]o, [a]lways this function, [q]uit? ",
            call.name,
            call.arguments,
            program.join(" ")
        ));
        // Another thread waits for the key, so that Ctrl-C still works.
        let asked = tokio::task::spawn_blocking(move || {
            let answer = terminal.ask(&question);
            (terminal, answer)
        });
        let (terminal, answer) = asked.await.map_err(|error| Failure::general(error.to_string()))?;
        self.terminal = Some(terminal);
        let answer = answer.map_err(|error| Failure::general(format!("the terminal cannot be asked: {error}")))?;
        Ok(match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Answer::Yes,
            "a" | "always" => {
                self.always.insert(call.name.clone());
                Answer::Yes
            }
            "q" | "quit" => Answer::Quit,
            _ => Answer::No,
        })
    }
}

impl Terminal {
    /// The terminal itself: standard input may be the prompt.
    fn open() -> Result<Self, Failure> {
        let open = || OpenOptions::new().read(true).write(true).open("/dev/tty");
        let opened = open().and_then(|write| Ok((open()?, write)));
        let (read, write) = opened.map_err(|_| {
            Failure::validation("--run-tools asks before each run, and there is no terminal to ask at")
                .hint("--yes runs the functions of --tools-file without asking")
        })?;
        Ok(Self { read: BufReader::new(read), write })
    }

    fn ask(&mut self, question: &str) -> std::io::Result<String> {
        self.write.write_all(question.as_bytes())?;
        self.write.flush()?;
        let mut answer = String::new();
        self.read.read_line(&mut answer)?;
        Ok(answer)
    }
}

/// Runs a program with `input` on its standard input, in `folder` if there is one. Its messages go to ours. A failure is told to the model, which may
/// know what to do about it.
pub(crate) async fn execute(
    program: &[String],
    input: &str,
    folder: Option<&Path>,
) -> std::io::Result<(String, Option<i32>)> {
    let mut command = Command::new(&program[0]);
    if let Some(folder) = folder {
        command.current_dir(folder);
    }
    command
        .args(&program[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .kill_on_drop(true);
    let mut child = command.spawn()?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let write = async {
        if let Some(mut stdin) = stdin {
            // A program need not read what it is given.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
    };
    let read = async {
        let mut output = Vec::new();
        let Some(mut stdout) = stdout else { return Ok((output, false)) };
        (&mut stdout).take(MAX_OUTPUT_BYTES).read_to_end(&mut output).await?;
        // The rest is read and dropped, so that the program can end.
        let dropped = tokio::io::copy(&mut stdout, &mut tokio::io::sink()).await?;
        Ok::<_, std::io::Error>((output, dropped > 0))
    };
    let ((), output) = tokio::join!(write, read);
    let (output, is_cut) = output?;
    let status = child.wait().await?;
    let mut text = String::from_utf8_lossy(&output).trim_end_matches(['\n', '\r']).to_owned();
    if is_cut {
        text.push_str("\n(cut off: the output was longer than 1 MiB)");
    }
    if !status.success() {
        text = format!("The program failed ({status}).\n{text}");
    }
    Ok((text, status.code()))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn run(program: &[&str], arguments: &str) -> Run {
        let program = program.iter().map(|word| (*word).to_owned()).collect();
        let mut runner = Runner::new([("f".to_owned(), program)].into(), true).unwrap();
        let call = FunctionCall { call_id: "c".into(), name: "f".into(), arguments: arguments.into() };
        runner.run(&call).await.unwrap()
    }

    #[tokio::test]
    async fn arguments_go_in_and_output_comes_out() {
        let done = run(&["cat"], r#"{"city":"Oslo"}"#).await;
        assert_eq!((done.output.as_str(), done.exit_code), (r#"{"city":"Oslo"}"#, Some(0)));
        assert_eq!(run(&["cat"], "").await.output, "{}");
        assert_eq!(run(&["sh", "-c", "echo done"], "{}").await.output, "done");
    }

    #[tokio::test]
    async fn what_goes_wrong_is_told_to_the_model() {
        assert_eq!(
            run(&["sh", "-c", "echo why; exit 3"], "{}").await.output,
            "The program failed (exit status: 3).\nwhy"
        );
        assert!(run(&["/nowhere/at/all"], "{}").await.output.contains("could not be run"));
        let broken = run(&["cat"], "{\"a\":").await;
        assert!(broken.output.contains("not valid JSON") && broken.exit_code.is_none());
    }

    #[tokio::test]
    async fn a_flood_is_cut_and_the_program_ends() {
        let done = run(&["sh", "-c", "yes | head -c 3000000"], "{}").await;
        assert!(done.output.len() < 1_100_000 && done.output.ends_with("longer than 1 MiB)"));
        assert_eq!(done.exit_code, Some(0));
    }
}
