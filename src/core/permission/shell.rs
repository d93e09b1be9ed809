//! Command lines, read in two ways. Both err to the same side: [`simple`] takes for a plain command only what cannot be
//! anything else, and [`fragments`] finds every command that might be in there.
//!
//! Which shell runs the line is not known, so nothing counts as harmless that is special in any of them.

use super::programs;

/// Longest line that is looked into, in bytes.
const LONGEST: usize = 16 * 1024;
/// How deep lines within lines (`sh -c '…'`) are looked into.
const DEEPEST: usize = 4;

/// The words of a line that is one simple command of literal words; `None` if it is anything else, or may be.
///
/// Quotes may hold spaces together, and nothing else: a character that any shell gives a meaning is refused within them, too.
pub(super) fn simple(line: &str) -> Option<Vec<String>> {
    if line.len() > LONGEST {
        return None;
    }
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.trim_matches(' ').chars() {
        match (c, quote) {
            (_, Some(open)) if c == open => quote = None,
            (' ', Some(_)) => word.get_or_insert_default().push(' '),
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (' ', None) => words.extend(word.take()),
            _ if is_plain(c) => word.get_or_insert_default().push(c),
            _ => return None,
        }
    }
    words.extend(word);
    // An assignment, an option, and zsh's `=program`.
    let program_is_plain =
        words.first().is_some_and(|first| !first.is_empty() && !first.starts_with('-') && !first.contains(['=', ' ']));
    let is_literal = quote.is_none() && program_is_plain && !words.iter().any(|word| word.starts_with('='));
    is_literal.then_some(words)
}

/// Whether no shell gives this character a meaning of its own. `%` has one in cmd.exe.
const fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(c, '_' | '@' | '+' | '=' | ':' | ',' | '.' | '/' | '-')
        || (c == '%' && !cfg!(windows))
}

/// A word of a command that may be run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Word {
    /// The word without its quotes; expansions stand in it as they were written.
    pub(super) text: String,
    /// Whether the shell takes it as it is: no expansion, no pattern.
    pub(super) is_literal: bool,
}

/// A command that may be run by a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fragment {
    /// Its words. Redirections are words too: the sign, then the file.
    pub(super) words: Vec<Word>,
    /// Whether its output goes into the next one.
    pub(super) is_piped: bool,
    /// Assignments before it (`PATH=…`).
    pub(super) has_assignments: bool,
    /// Texts that were quoted, each of which a program may run as a line of its own.
    quoted: Vec<String>,
}

impl Fragment {
    /// Whether it is certain which program runs, and that this one runs no other.
    pub(super) fn is_certain(&self) -> bool {
        !self.has_assignments
            && self.words.first().is_some_and(|word| {
                word.is_literal && !programs::is_reserved(&word.text) && !programs::runs_others(&word.text)
            })
            && !programs::has_running_option(&self.words)
    }

    /// The name of the program, without its folder; empty if there is none.
    pub(super) fn program(&self) -> &str {
        self.words.first().map_or("", |word| programs::base_name(&word.text))
    }
}

/// Every command that a line may run, as far as that can be read from it. `None` if it is too long or too deep to tell.
pub(super) fn fragments(line: &str) -> Option<Vec<Fragment>> {
    let mut found = Vec::new();
    collect(line, DEEPEST, &mut found).then_some(found)
}

/// Adds the commands of `line` to `found`; `false` if they cannot all be told.
fn collect(line: &str, deepest: usize, found: &mut Vec<Fragment>) -> bool {
    if line.len() > LONGEST {
        return false;
    }
    let mut reader = Reader::default();
    reader.read(line);
    for fragment in reader.done {
        // Text in quotes is run by what runs others, and by whatever program a variable stands for.
        let lines = if fragment.is_certain() { Vec::new() } else { fragment.quoted.clone() };
        found.push(fragment);
        if !lines.is_empty() && (deepest == 0 || !lines.iter().all(|line| collect(line, deepest - 1, found))) {
            return false;
        }
    }
    reader.substituted.iter().all(|line| deepest > 0 && collect(line, deepest - 1, found))
}

/// Cuts a line into fragments.
#[derive(Debug, Default)]
struct Reader {
    done: Vec<Fragment>,
    current: Fragment,
    word: Option<Word>,
    /// A brace was open: commas separate, too.
    in_braces: bool,
    in_backticks: bool,
    /// Quoted texts in which commands are substituted.
    substituted: Vec<String>,
}

impl Reader {
    fn read(&mut self, line: &str) {
        let mut chars = line.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                ' ' | '\t' | '\r' => self.end_word(),
                '|' => {
                    // `|&` is a pipe as well; `||` is none, but harmless when taken for one.
                    self.end_fragment(chars.peek() != Some(&'|'));
                }
                '\n' | ';' | '&' | '(' | ')' => self.end_fragment(false),
                '`' => {
                    self.in_backticks = !self.in_backticks;
                    if self.in_backticks {
                        self.unknown('`');
                    }
                    self.end_fragment(false);
                }
                '{' | '}' => {
                    self.in_braces |= c == '{';
                    self.end_fragment(false);
                }
                ',' if self.in_braces => self.end_word(),
                '<' | '>' => {
                    self.end_word();
                    self.current.words.push(Word { text: c.to_string(), is_literal: true });
                }
                '\\' => match chars.next() {
                    Some('\n') | None => {}
                    Some(escaped) => self.literal(escaped),
                },
                '\'' => {
                    let text: String = chars.by_ref().take_while(|c| *c != '\'').collect();
                    self.quoted(text);
                }
                '"' => {
                    let mut text = String::new();
                    while let Some(c) = chars.next().filter(|c| *c != '"') {
                        // What is escaped for this shell is plain for the one that runs the text.
                        let escaped = (c == '\\').then(|| chars.next()).flatten();
                        text.extend(escaped.or(Some(c)));
                    }
                    if text.contains(['`', '$']) {
                        self.unknown('$');
                        self.substituted.push(text.clone());
                    }
                    self.quoted(text);
                }
                '$' => {
                    self.unknown('$');
                    match chars.peek() {
                        Some('(') => self.end_fragment(false),
                        Some('{') => {
                            let name = chars.by_ref().skip(1).take_while(|c| *c != '}').collect::<String>();
                            self.word.get_or_insert_default().text.push_str(&name);
                        }
                        _ => {}
                    }
                }
                '*' | '?' | '[' | ']' | '~' | '!' | '#' | '^' | '%' => self.unknown(c),
                _ => self.literal(c),
            }
        }
        self.end_fragment(false);
    }

    fn literal(&mut self, c: char) {
        self.word.get_or_insert_with(|| Word { text: String::new(), is_literal: true }).text.push(c);
    }

    /// A sign that makes of the word something that is not known.
    fn unknown(&mut self, c: char) {
        let word = self.word.get_or_insert_default();
        word.text.push(c);
        // A per cent sign means something to cmd.exe only.
        word.is_literal &= c == '%';
    }

    fn quoted(&mut self, text: String) {
        self.word.get_or_insert_with(|| Word { text: String::new(), is_literal: true }).text.push_str(&text);
        self.current.quoted.push(text);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        let is_assignment = self.current.words.is_empty()
            && word.text.split_once('=').is_some_and(|(name, _)| {
                !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            });
        if is_assignment {
            self.current.has_assignments = true;
        } else if !word.text.is_empty() || !self.current.words.is_empty() {
            self.current.words.push(word);
        }
    }

    fn end_fragment(&mut self, is_piped: bool) {
        self.end_word();
        let mut fragment = std::mem::take(&mut self.current);
        if fragment != Fragment::default() {
            fragment.is_piped = is_piped;
            self.done.push(fragment);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<Vec<String>> {
        let fragments = fragments(line).unwrap_or_default();
        fragments.into_iter().map(|fragment| fragment.words.into_iter().map(|word| word.text).collect()).collect()
    }

    #[test]
    fn a_simple_command_is_nothing_but_words() {
        let plain = ["git status", "  ls -la  src/a.rs", "cargo test --lib -- a::b", "date +%F", "apt-get update"];
        for line in plain {
            assert!(simple(line).is_some(), "{line}");
        }
        assert_eq!(
            simple("git commit -m 'two words' \"\""),
            Some(["git", "commit", "-m", "two words", ""].map(str::to_owned).to_vec())
        );
        let others = [
            "",
            " ",
            "a;b",
            "a && b",
            "a|b",
            "a &",
            "a > b",
            "a < b",
            "a\nb",
            "a\rb",
            "a\tb",
            "$a",
            "a $b",
            "a `b`",
            "a 'b",
            "a \"b",
            "a \"$b\"",
            "A=1 b",
            "'A=1' b",
            "a *",
            "a ?",
            "a [b]",
            "a {b,c}",
            "~/a",
            "a ~",
            "a \\b",
            "a #b",
            "!a",
            "(a)",
            "-a",
            "=a",
            "a =b",
            "'a b' c",
            "a \u{202e}b",
            "a\u{a0}b",
            "a ';'",
            "a \"|\"",
            "'' a",
        ];
        for line in others {
            assert_eq!(simple(line), None, "{line:?}");
        }
        assert_eq!(simple(&"a ".repeat(LONGEST)), None);
    }

    #[test]
    fn every_command_of_a_line_is_found() {
        assert_eq!(
            words("a b; c && d | e & f\ng"),
            [vec!["a", "b"], vec!["c"], vec!["d"], vec!["e"], vec!["f"], vec!["g"]]
        );
        assert_eq!(words("a $(b c) `d`"), [vec!["a", "$"], vec!["b", "c"], vec!["`"], vec!["d"]]);
        assert_eq!(words("sh -c 'rm -rf x; y'")[1..], [vec!["rm", "-rf", "x"], vec!["y"]]);
        assert_eq!(words("echo \"$(rm x)\"")[1..], [vec!["$"], vec!["rm", "x"]]);
        assert_eq!(words("{rm,-rf,x}"), [vec!["rm", "-rf", "x"]]);
        assert_eq!(words("r\\m r''m"), [vec!["rm", "rm"]]);
        assert_eq!(words("A=1 b"), [vec!["b"]]);
        assert_eq!(words("git commit -m 'rm -rf x'").len(), 1, "a message is no command");
        assert_eq!(words("a >b"), [vec!["a", ">", "b"]]);
        assert!(fragments(&"x".repeat(LONGEST + 1)).is_none());
    }

    #[test]
    fn a_line_that_is_too_deep_is_not_told() {
        let deep = (0..10)
            .fold("x".to_owned(), |line, _| format!("sh -c \"{}\"", line.replace('\\', "\\\\").replace('"', "\\\"")));
        assert!(fragments(&deep).is_none());
    }
}
