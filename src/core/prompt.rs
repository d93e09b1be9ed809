//! What a prompt is made of: text, and mentions that stand for something of the user's.
//!
//! A prompt stays as the user wrote it until it is sent; only then is it known which agent it goes to, what that agent
//! takes, and what the mentioned files hold.

use std::path::{Path, PathBuf};

/// What kinds of content an agent takes in a prompt besides text and links (`promptCapabilities`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PromptCapabilities {
    /// Images.
    pub image: bool,
    /// The text of resources, embedded.
    pub embedded_context: bool,
}

/// A piece of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptPart {
    /// As typed.
    Text(String),
    /// Something that goes along.
    Mention {
        /// As typed, `@src/main.rs`.
        label: String,
        /// What it stands for.
        source: Source,
    },
}

/// What a mention stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file, a folder or an image.
    File {
        /// Absolute.
        path: PathBuf,
        /// The first and last line, 1-based, if it is only a part.
        lines: Option<(u64, u64)>,
    },
    /// A text that Neovim has.
    Text {
        /// A name for it, `diagnostics`.
        name: String,
        /// The text.
        text: String,
    },
    /// What is not committed in the chat's folder.
    Diff,
}

impl Source {
    /// Whether it is looked up before the prompt is sent.
    pub const fn is_looked_up(&self) -> bool {
        !matches!(self, Self::Text { .. })
    }
}

/// What was found for a source that is looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing: the mention is only text.
    Nothing,
    /// Something that is best linked to: a folder, a binary file, a file that nobody needs the text of.
    Link,
    /// Its text.
    Text(String),
    /// An image.
    Image {
        /// Its type.
        mime: &'static str,
        /// Its bytes in base64; `None` if they were not asked for.
        data: Option<String>,
    },
    /// It is too large to go along; its size in bytes.
    TooLarge(u64),
    /// It could not be made, and why.
    Failed(String),
}

/// A content block of `session/prompt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptBlock {
    /// Text.
    Text(String),
    /// A link.
    Link {
        /// What the user sees of it.
        name: String,
        /// Where it leads.
        uri: String,
    },
    /// A text with the place where it is from.
    Resource {
        /// The place.
        uri: String,
        /// The text.
        text: String,
    },
    /// An image.
    Image {
        /// Where it is from.
        uri: String,
        /// Its type.
        mime: &'static str,
        /// Its bytes in base64.
        data: String,
    },
}

/// A prompt as the user wrote it.
pub fn written(parts: &[PromptPart]) -> String {
    parts
        .iter()
        .map(|part| match part {
            PromptPart::Text(text) => text.as_str(),
            PromptPart::Mention { label, .. } => label,
        })
        .collect()
}

/// The sources that are looked up before the prompt is sent, in order.
pub fn looked_up(parts: &[PromptPart]) -> Vec<Source> {
    parts
        .iter()
        .filter_map(|part| match part {
            PromptPart::Mention { source, .. } if source.is_looked_up() => Some(source.clone()),
            PromptPart::Mention { .. } | PromptPart::Text(_) => None,
        })
        .collect()
}

/// What is sent, and what the user should know about it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Composed {
    /// The content blocks.
    pub blocks: Vec<PromptBlock>,
    /// Sentences about what goes in another form than it was mentioned in.
    pub notes: Vec<String>,
}

/// Makes the blocks for an agent of that name and with these capabilities. `found` is what was found for [`looked_up`].
pub fn compose(parts: Vec<PromptPart>, found: Vec<Found>, takes: PromptCapabilities, agent: &str) -> Composed {
    let mut composed = Composed::default();
    let mut found = found.into_iter();
    for part in parts {
        match part {
            PromptPart::Text(text) => composed.text(&text),
            PromptPart::Mention { label, source: Source::Text { name, text } } => {
                composed.embed(takes, &label, format!("agentchat:///{name}"), text);
            }
            PromptPart::Mention { label, source: Source::Diff } => match found.next() {
                Some(Found::Text(text)) => composed.embed(takes, &label, "agentchat:///diff".to_owned(), text),
                Some(Found::Failed(why)) => {
                    composed.text(&label);
                    composed.notes.push(format!("{label} does not go along: {why}."));
                }
                _ => composed.text(&label),
            },
            PromptPart::Mention { label, source: Source::File { path, lines } } => {
                composed.file(takes, agent, &label, &path, lines, found.next().unwrap_or(Found::Nothing));
            }
        }
    }
    composed
}

impl Composed {
    fn text(&mut self, text: &str) {
        if let Some(PromptBlock::Text(last)) = self.blocks.last_mut() {
            last.push_str(text);
        } else if !text.is_empty() {
            self.blocks.push(PromptBlock::Text(text.to_owned()));
        }
    }

    /// A text with its place, or, for an agent that does not take that, the same as text.
    fn embed(&mut self, takes: PromptCapabilities, label: &str, uri: String, text: String) {
        if takes.embedded_context {
            self.blocks.push(PromptBlock::Resource { uri, text });
        } else {
            let fence = fence_for(&text);
            let line_break = if text.ends_with('\n') { "" } else { "\n" };
            // A block of its own, that begins with a line break whether or not the agent puts one between blocks.
            if let Some(PromptBlock::Text(last)) = self.blocks.last_mut()
                && last.ends_with('\n')
            {
                last.pop();
            }
            self.blocks.push(PromptBlock::Text(format!("\n{label}:\n{fence}\n{text}{line_break}{fence}\n")));
        }
    }

    fn file(
        &mut self,
        takes: PromptCapabilities,
        agent: &str,
        label: &str,
        path: &Path,
        lines: Option<(u64, u64)>,
        found: Found,
    ) {
        let uri = file_uri(path, lines);
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        match found {
            Found::Nothing => return self.text(label),
            Found::Text(text) if takes.embedded_context => {
                self.blocks.push(PromptBlock::Resource { uri, text });
                return;
            }
            // A link to lines is not known to every agent, and the lines may not be saved.
            Found::Text(text) if lines.is_some() => return self.embed(takes, label, uri, text),
            Found::Image { mime, data: Some(data) } if takes.image => {
                self.blocks.push(PromptBlock::Image { uri, mime, data });
                return;
            }
            Found::Image { .. } if !takes.image => {
                self.notes.push(format!("{agent} takes no images: {name} goes as a link."));
            }
            Found::TooLarge(bytes) => {
                self.notes.push(format!("{name} is too large to go along ({} KiB): it goes as a link.", bytes / 1024));
            }
            Found::Failed(why) => self.notes.push(format!("{name} goes as a link: {why}.")),
            Found::Image { .. } | Found::Text(_) | Found::Link => {}
        }
        self.blocks.push(PromptBlock::Link { name, uri });
    }
}

/// A code fence that does not occur in the text.
fn fence_for(text: &str) -> String {
    let longest = text.lines().map(|line| line.trim_start().bytes().take_while(|byte| *byte == b'`').count()).max();
    "`".repeat(longest.unwrap_or(0).max(2) + 1)
}

/// `file:///p/a%20b.rs#L3:7`, the lines as other clients of the protocol write them.
fn file_uri(path: &Path, lines: Option<(u64, u64)>) -> String {
    use std::fmt::Write as _;
    let mut uri = "file://".to_owned();
    let mut path = path.to_string_lossy().into_owned();
    if cfg!(windows) {
        path = format!("/{}", path.replace('\\', "/"));
    }
    for &byte in path.as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~:@!$&'()*+,;=".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    if let Some((first, last)) = lines {
        // As above.
        let _ = write!(uri, "#L{first}:{last}");
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: PromptCapabilities = PromptCapabilities { image: true, embedded_context: true };
    const NONE: PromptCapabilities = PromptCapabilities { image: false, embedded_context: false };

    fn file(label: &str, path: &str, lines: Option<(u64, u64)>) -> PromptPart {
        PromptPart::Mention { label: label.into(), source: Source::File { path: path.into(), lines } }
    }

    fn parts() -> Vec<PromptPart> {
        vec![
            PromptPart::Text("see ".into()),
            file("@a b.rs", "/p/a b.rs", None),
            PromptPart::Text(" and ".into()),
            file("@c.rs#L3-7", "/p/c.rs", Some((3, 7))),
            PromptPart::Text(", ".into()),
            file("@param", "/p/param", None),
            file("@i.png", "/p/i.png", None),
        ]
    }

    fn found(image: Option<String>) -> Vec<Found> {
        vec![
            Found::Text("A\n".into()),
            Found::Text("C ```\n```\n".into()),
            Found::Nothing,
            Found::Image { mime: "image/png", data: image },
        ]
    }

    #[test]
    fn an_agent_that_takes_all_gets_everything_in_its_place() {
        assert_eq!(written(&parts()), "see @a b.rs and @c.rs#L3-7, @param@i.png");
        let composed = compose(parts(), found(Some("AAAA".into())), ALL, "it");
        assert_eq!(
            composed.blocks,
            [
                PromptBlock::Text("see ".into()),
                PromptBlock::Resource { uri: "file:///p/a%20b.rs".into(), text: "A\n".into() },
                PromptBlock::Text(" and ".into()),
                PromptBlock::Resource { uri: "file:///p/c.rs#L3:7".into(), text: "C ```\n```\n".into() },
                PromptBlock::Text(", @param".into()),
                PromptBlock::Image { uri: "file:///p/i.png".into(), mime: "image/png", data: "AAAA".into() },
            ]
        );
        assert_eq!(composed.notes, [""; 0]);
    }

    #[test]
    fn an_agent_that_takes_text_gets_links_and_lines_as_text_and_the_user_is_told() {
        let composed = compose(parts(), found(None), NONE, "it");
        assert_eq!(
            composed.blocks,
            [
                PromptBlock::Text("see ".into()),
                PromptBlock::Link { name: "a b.rs".into(), uri: "file:///p/a%20b.rs".into() },
                PromptBlock::Text(" and ".into()),
                PromptBlock::Text("\n@c.rs#L3-7:\n````\nC ```\n```\n````\n, @param".into()),
                PromptBlock::Link { name: "i.png".into(), uri: "file:///p/i.png".into() },
            ]
        );
        assert_eq!(composed.notes, ["it takes no images: i.png goes as a link."]);
    }

    #[test]
    fn what_cannot_go_along_is_told() {
        let diff = PromptPart::Mention { label: "@diff".into(), source: Source::Diff };
        let all = vec![diff, file("@big", "/big", None)];
        let found = vec![Found::Failed("no repository".into()), Found::TooLarge(3 << 20)];
        let composed = compose(all, found, ALL, "it");
        assert_eq!(
            composed.notes,
            ["@diff does not go along: no repository.", "big is too large to go along (3072 KiB): it goes as a link.",]
        );
        assert_eq!(composed.blocks.len(), 2);
    }
}
