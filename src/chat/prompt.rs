//! What is asked: the words of the command line, and standard input.

use std::io::{self, IsTerminal as _, Read as _};

use super::failure::Failure;

/// The prompt: the words, in which `-` stands for standard input; without words standard input, unless files go along.
/// Nothing if only files are asked about.
pub(super) async fn read(words: Vec<String>, has_input: bool) -> Result<Option<String>, Failure> {
    let missing = || {
        Failure::validation("prompt is required when no --input is provided")
            .hint("agentchat chat \"…\", or pipe it: echo \"…\" | agentchat chat")
    };
    let reads_stdin = words.iter().any(|word| word == "-") || words.is_empty() && !has_input;
    let stdin = if reads_stdin {
        if words.is_empty() && io::stdin().is_terminal() {
            return Err(missing());
        }
        Some(read_stdin().await?)
    } else {
        None
    };
    let prompt = compose(&words, stdin.as_deref());
    if prompt.trim().is_empty() {
        return if has_input { Ok(None) } else { Err(missing()) };
    }
    Ok(Some(prompt))
}

fn compose(words: &[String], stdin: Option<&str>) -> String {
    let Some(stdin) = stdin else { return words.join(" ") };
    let stdin = stdin.trim_end_matches(['\n', '\r']);
    if words.is_empty() {
        return stdin.to_owned();
    }
    let mut prompt = String::new();
    let mut before = "";
    for word in words {
        let (text, gap) = if word == "-" { (stdin, "\n\n") } else { (word.as_str(), " ") };
        if !prompt.is_empty() {
            prompt.push_str(if before == "-" { "\n\n" } else { gap });
        }
        prompt.push_str(text);
        before = word;
    }
    prompt
}

/// On another thread, so that Ctrl-C still works.
async fn read_stdin() -> Result<String, Failure> {
    let read = tokio::task::spawn_blocking(|| {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    });
    let bytes = read.await.map_err(|error| Failure::general(error.to_string()))?;
    let bytes = bytes.map_err(|error| Failure::general(format!("standard input cannot be read: {error}")))?;
    String::from_utf8(bytes)
        .map_err(|_| Failure::validation("standard input is not UTF-8 text").hint("files go along with --input"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn composed(words: &[&str], stdin: Option<&str>) -> String {
        compose(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), stdin)
    }

    #[test]
    fn words_and_standard_input_make_the_prompt() {
        assert_eq!(composed(&["how", "are you"], None), "how are you");
        assert_eq!(composed(&[], Some("hi\n")), "hi");
        assert_eq!(composed(&["Review this:", "-"], Some("diff\n")), "Review this:\n\ndiff");
        assert_eq!(composed(&["-", "Review", "that"], Some("diff")), "diff\n\nReview that");
    }
}
