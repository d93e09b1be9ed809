//! What the model is told before anything else: a short text of ours, where it is, and what the project wants agents to know.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Ours.
const PROMPT: &str = include_str!("prompt.md");
/// Files of the project for agents.
const FILE: &str = "AGENTS.md";
/// The most of them that is sent, in bytes.
const LONGEST: usize = 32 * 1024;

/// The whole text, for a session in `folder`. `user` is the folder of the user's own configuration.
pub(super) fn text(folder: &Path, user: Option<&Path>) -> String {
    let mut text = format!(
        "{PROMPT}\nThe project is in {}. Paths are relative to it. The system is {}.\n",
        folder.display(),
        std::env::consts::OS
    );
    for path in files(folder, user) {
        let Ok(said) = std::fs::read_to_string(&path) else { continue };
        let said = said.trim();
        if said.is_empty() {
            continue;
        }
        let end = said.floor_char_boundary(LONGEST);
        let _ = write!(text, "\n# From {}\n\n{}\n", path.display(), &said[..end]);
        if end < said.len() {
            text.push_str("(cut off here; read the file for the rest)\n");
        }
    }
    text
}

/// The files that there are: the user's, then from the top of the repository down to the folder.
fn files(folder: &Path, user: Option<&Path>) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = Vec::new();
    for ancestor in folder.ancestors() {
        files.push(ancestor.join(FILE));
        if ancestor.join(".git").exists() {
            break;
        }
    }
    // Outside of a repository only the folder itself is the project.
    if !files.last().and_then(|last| last.parent()).is_some_and(|top| top.join(".git").exists()) {
        files.truncate(1);
    }
    files.extend(user.map(|user| user.join(FILE)));
    files.reverse();
    files.into_iter().filter(|path| path.is_file()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_project_and_the_user_want_known_is_told_from_the_outside_in() {
        let root = tempfile::tempdir().unwrap();
        let (user, project) = (root.path().join("config"), root.path().join("project"));
        let inner = project.join("a/b");
        std::fs::create_dir_all(&user).unwrap();
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::create_dir(project.join(".git")).unwrap();
        std::fs::write(root.path().join(FILE), "outside").unwrap();
        std::fs::write(user.join(FILE), "of the user").unwrap();
        std::fs::write(project.join(FILE), "of the project").unwrap();
        std::fs::write(inner.join(FILE), "x".repeat(LONGEST + 1)).unwrap();
        let text = text(&inner, Some(&user));
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
        assert!(
            at("of the user") < at("of the project")
                && at("of the project") < at("xxx")
                && at("xxx") < at("cut off here")
        );
        assert!(!text.contains("outside"));
    }
}
